"""Errors of manifests, policies and amounts on pages are in the reader's language."""

from collections.abc import Callable

import pytest
from django.conf import settings
from django.core.exceptions import ValidationError
from django.test import Client
from django.urls import reverse
from django.utils import translation
from tests.apps.conftest import People

from hekla.apps.accounts.models import User
from hekla.apps.forms import QuantitiesField

As = Callable[[User], Client]
WRONG = {
    "name: Ä\ntasks: [{name: main, command: [x]}]": ("is not a valid name", "不是有效的名称"),
    "name: one\ntasks: [{name: main, command: [x], replicas: many}]": ("an integer", "应为整数"),
}


@pytest.mark.parametrize("text", WRONG)
def test_manifest_errors_are_translated(people: People, as_: As, text: str) -> None:
    english, chinese = WRONG[text]
    client = as_(people.alice)
    assert english in client.post(reverse("jobs:submit_yaml"), {"text": text}).content.decode()
    client.cookies[settings.LANGUAGE_COOKIE_NAME] = "zh-hans"
    page = client.post(reverse("jobs:submit_yaml"), {"text": text}).content.decode()
    assert chinese in page
    assert english not in page


def test_policy_errors_are_translated(people: People, as_: As) -> None:
    client = as_(people.ada)
    sent = {"text": "actions: dance\ntiers: [{plugins: [{name: gang, enableDance: true}]}]"}
    assert "Unknown action “dance”." in client.post(reverse("clusters:policy"), sent).content.decode()
    client.cookies[settings.LANGUAGE_COOKIE_NAME] = "zh-hans"
    page = client.post(reverse("clusters:policy"), sent).content.decode()
    assert "没有动作“dance”。可用的有：" in page
    assert "这不是插件的开关。" in page


def test_amount_errors_are_translated() -> None:
    with translation.override("zh-hans"), pytest.raises(ValidationError) as caught:
        QuantitiesField().clean("cpu=many")
    assert caught.value.messages == ["“many”不是有效的数量；请写成例如 2、250m 或 4Gi"]
