from django.db import migrations

# People find what was done by a part of the object's name. `hekla_event_names`: the fields of an event with the name of
# an object, one a line, in capitals.
_NAMES = """
CREATE FUNCTION hekla_event_names(payload jsonb) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT upper(coalesce(payload ->> 'name', '') || E'\\n' || coalesce(payload ->> 'username', '') || E'\\n' ||
                 coalesce(payload ->> 'title', '') || E'\\n' || coalesce(payload ->> 'cluster', '') || E'\\n' ||
                 coalesce(payload ->> 'node', '') || E'\\n' || coalesce(payload ->> 'email', ''))
$$
"""


class Migration(migrations.Migration):
    harmless = "A function that no version before calls."

    dependencies = [("event_log", "0001_initial")]

    operations = [migrations.RunSQL(_NAMES, reverse_sql="DROP FUNCTION hekla_event_names(jsonb)")]
