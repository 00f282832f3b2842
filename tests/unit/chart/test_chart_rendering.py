"""Each value set renders, lints, and fits Kubernetes' schemas; a wrong value is refused with a sentence."""

from __future__ import annotations

import functools
import re
from copy import deepcopy

import helm_python
import jsonschema
import kubernetes_validate
import pytest
import yaml
from chart import CHART, VALUE_SETS, Values, objects, render, with_cluster
from chart_foreign_schemas import FOREIGN

# The library reads megabytes of definitions for each object that it looks at.
kubernetes_validate.utils.schema_contents = functools.cache(kubernetes_validate.utils.schema_contents)

# The oldest that the chart allows, and what many run.
KUBERNETES = ("1.27", "1.34")

every_set = pytest.mark.parametrize("values", VALUE_SETS.values(), ids=VALUE_SETS.keys())


@every_set
def test_helm_has_nothing_to_say(values):
    report = helm_python.lint(CHART, with_cluster(values), strict=True)
    assert report["errors"] == []
    assert [message["error"] for message in report["messages"]] == ["icon is recommended"]


@every_set
@pytest.mark.parametrize("version", KUBERNETES)
def test_each_object_fits_its_schema(values, version):
    found = objects(values)
    for manifest in found:
        kind = manifest["kind"]
        if kind in FOREIGN:
            jsonschema.validate(manifest, FOREIGN[kind])
        else:
            kubernetes_validate.validate(deepcopy(manifest), version, strict=True)


def test_the_sets_reach_each_template_and_each_kind():
    templates, kinds = set(), set()
    for values in VALUE_SETS.values():
        texts = render(values)
        templates |= {path.rpartition("/")[2] for path, text in texts.items() if text.strip()}
        kinds |= {manifest["kind"] for manifest in objects(values)}
    assert templates == {path.name for path in (CHART / "templates").iterdir() if not path.name.startswith("_")}
    assert kinds >= FOREIGN.keys()


def test_objects_have_names_of_their_own():
    for values in VALUE_SETS.values():
        names = [(manifest["kind"], manifest["metadata"]["name"]) for manifest in objects(values)]
        assert len(names) == len(set(names))


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        pytest.param({"settings": {"cluster": ""}}, "settings.cluster: name the cluster", id="no cluster"),
        pytest.param(
            {"settings": {"clutser": "x"}}, "additional properties 'clutser' not allowed", id="unknown setting"
        ),
        pytest.param({"settings": {"log_level": "loud"}}, "value must be one of", id="no such level"),
        pytest.param({"wokers": {}}, "additional properties 'wokers' not allowed", id="unknown value"),
        pytest.param({"flower": {"enabled": True}}, "name a Secret with user:password", id="Flower without password"),
        pytest.param({"redis": {"caSecret": {"name": "ca"}}}, "name its URL in redis.urlSecret", id="a CA for nothing"),
        pytest.param(
            {"workers": {"ec2": {"autoscaling": {"by": "keda+hpa"}}}},
            "value must be one of 'none', 'cpu', 'queue'",
            id="two autoscalers for one Deployment",
        ),
        pytest.param(
            {"workers": {"ec2": {"autoscaling": {"by": "cpu", "min": 9, "max": 8}}}},
            "workers.ec2.autoscaling: min 9 is more than max 8",
            id="no room between least and most",
        ),
        pytest.param(
            {"workers": {"resync": {"autoscaling": {"by": "queue"}}}},
            "additional properties 'autoscaling' not allowed",
            id="more pods don't read faster",
        ),
        pytest.param(
            {"redis": {"urlSecret": {"name": "x"}}, "workers": {"ec2": {"autoscaling": {"by": "queue"}}}},
            "keda.address: say host:port of Redis",
            id="KEDA can't read our URL",
        ),
        pytest.param({"serviceAccount": {"create": False}}, "serviceAccount.name: say which", id="no service account"),
    ],
)
def test_a_wrong_value_is_refused_with_a_sentence(values: Values, sentence):
    with pytest.raises(helm_python.HelmError, match=re.escape(sentence)):
        render(values)


def test_each_value_has_a_place_in_the_schema():
    """The schema is strict, so a value without a place could never be given."""
    defaults = yaml.safe_load((CHART / "values.yaml").read_text())
    with helm_python.Chart.load(CHART) as chart:
        schema = chart.schema
        assert schema is not None

        def places(given: object, place: dict[str, object], path: str) -> list[str]:
            if "$ref" in place:
                place = schema["definitions"][str(place["$ref"]).rpartition("/")[2]]
            if not isinstance(given, dict) or "properties" not in place:
                return []
            known = place["properties"]
            assert isinstance(known, dict)
            missing = [f"{path}{key}" for key in given if key not in known]
            return missing + [
                m for key in given if key in known for m in places(given[key], known[key], f"{path}{key}.")
            ]

        assert places(defaults, schema, "") == []
