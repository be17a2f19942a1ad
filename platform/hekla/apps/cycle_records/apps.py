from django.apps import AppConfig


class CycleRecordsConfig(AppConfig):
    name = "hekla.apps.cycle_records"
    label = "cycle_records"
