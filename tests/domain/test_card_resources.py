"""Resources that count cards, and the models of cards."""

import pytest

from hekla.domain.card_resources import card_counts, is_card, model_of, of_cards, product_labels
from hekla.domain.cards import NodeCard
from hekla.domain.resources import Resources


@pytest.mark.parametrize(
    "name",
    [
        "nvidia.com/gpu", "nvidia.com/gpu.shared", "nvidia.com/mig-1g.5gb", "volcano.sh/gpu-number",
        "volcano.sh/vgpu-number", "huawei.com/Ascend910", "huawei.com/npu", "amd.com/gpu", "amd.com/cpx_nps4",
        "kunlunxin.com/xpu", "cambricon.com/mlu370", "hygon.com/dcunum", "gpu.intel.com/i915", "google.com/tpu",
        "enflame.com/gcu", "habana.ai/gaudi", "aws.amazon.com/neuron", "metax-tech.com/sgpu",
    ],
)  # fmt: skip
def test_cards_of_all_vendors(name: str) -> None:
    assert is_card(name)
    assert card_counts(Resources.parse({name: "2", "cpu": "4"})) == {name: 2.0}


@pytest.mark.parametrize(
    "name",
    [
        "cpu", "memory", "pods", "gpu", "rdma/hca", "hugepages-2Mi", "volcano.sh/gpu-memory", "volcano.sh/vgpu-cores",
        "volcano.sh/vgpu-memory-percentage", "huawei.com/Ascend910-memory", "nvidia.com/gpumem", "intel.com/sriov",
        "gpu.intel.com/i915_monitoring",
    ],
)  # fmt: skip
def test_other_resources_are_no_cards(name: str) -> None:
    assert not is_card(name)


def test_part_of_a_shared_card_counts_as_one() -> None:
    assert card_counts(Resources.parse({"volcano.sh/gpu-memory": "2048"})) == {"volcano.sh/gpu-memory": 1.0}
    virtual = {"volcano.sh/vgpu-number": "1", "volcano.sh/vgpu-memory": "2048", "volcano.sh/vgpu-cores": "50"}
    assert card_counts(Resources.parse(virtual)) == {"volcano.sh/vgpu-number": 1.0}
    assert of_cards(["cpu", "volcano.sh/gpu-memory", "amd.com/gpu"]) == ["amd.com/gpu", "volcano.sh/gpu-memory"]


def test_labels_name_the_model_of_equal_cards() -> None:
    cards = [NodeCard("nvidia.com/gpu", at, model="NVIDIA A100 (80GB)") for at in range(2)]
    others = [NodeCard("amd.com/gpu", 0, model="MI300X"), NodeCard("amd.com/gpu", 1, model="MI250")]
    unknown = [NodeCard("huawei.com/Ascend910", 0)]
    assert product_labels([*cards, *others, *unknown]) == {"nvidia.com/gpu.product": "NVIDIA-A100-80GB"}


@pytest.mark.parametrize(
    ("resource", "labels", "model"),
    [
        ("nvidia.com/gpu", {"nvidia.com/gpu.product": "NVIDIA-A100"}, "NVIDIA-A100"),
        ("nvidia.com/mig-1g.5gb", {"nvidia.com/gpu.product": "NVIDIA-A100"}, "NVIDIA-A100/mig-1g.5gb-mixed"),
        (
            "nvidia.com/gpu.shared",
            {
                "nvidia.com/gpu.product": "NVIDIA-A100",
                "nvidia.com/gpu.memory": "81920",
                "nvidia.com/gpu.replicas": "8",
            },
            "NVIDIA-A100/mps-80g*1/8",
        ),
        ("volcano.sh/vgpu-number", {"nvidia.com/gpu.product": "Tesla-T4"}, "Tesla-T4"),
        ("huawei.com/Ascend910", {"huawei.com/Ascend910.product": "910B4", "huawei.com/a.product": "x"}, "910B4"),
        ("huawei.com/Ascend910", {"nvidia.com/gpu.product": "NVIDIA-A100"}, "huawei.com/Ascend910"),
    ],
)
def test_model_of_a_node(resource: str, labels: dict[str, str], model: str) -> None:
    """As Volcano's capacity-card names them."""
    assert model_of(resource, labels) == model
