"""Item 6: what the trace says of the GPU, against nvidia-smi."""

from __future__ import annotations

import re
import subprocess
import time
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest
import support
import trace_decode


def link_of(gpu: ElementTree.Element) -> dict[str, int | None]:
    """PCIe generation and width, now and at most."""
    told = {}
    for key, path in {
        "pcie_generation": "pcie_gen/current_link_gen",
        "pcie_generation_max": "pcie_gen/max_link_gen",
        "pcie_width": "link_widths/current_link_width",
        "pcie_width_max": "link_widths/max_link_width",
    }.items():
        number = re.match(r"\d+", gpu.findtext(f"pci/pci_gpu_link_info/{path}", ""))
        told[key] = int(number.group()) if number else None
    return told


def gpus() -> list[ElementTree.Element]:
    return ElementTree.fromstring(support.smi("-q", "-x")).findall("gpu")


@pytest.mark.item(6)
def test_gpu_against_nvidia_smi(tmp_path: Path, figures: dict[str, Any]) -> None:
    """Name, UUID, bus, driver, memory, PCIe generation × width and NVLink state equal nvidia-smi's."""
    if not support.smi("-L"):
        pytest.skip("nvidia-smi does not answer here")
    idle = link_of(gpus()[0])
    out = tmp_path / "job"
    out.mkdir()
    trace_file = tmp_path / "trace.gpuperf"
    command = support.traced(trace_file, support.job("dying", "--out", out, "--seconds", 3))
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=support.environment())
    try:
        while process.poll() is None and not (out / "stamps").exists():
            time.sleep(0.05)
        busy = gpus()
        nvlink = support.smi("nvlink", "-s", "-i", "0")
        process.wait(timeout=120)
    finally:
        process.kill()
    told = trace_decode.read(trace_file).run_info
    assert told is not None
    device, card = told["devices"][0], busy[0]
    figures |= {
        key: device[key] for key in ("name", "pcie_generation", "pcie_width", "pcie_generation_max", "pcie_width_max")
    }
    figures["nvlinks active"] = sum(link["active"] for link in device["nvlinks"])
    figures["nvidia-smi, idle"], figures["nvidia-smi, busy"] = idle, link_of(card)
    assert len(told["devices"]) == len(busy)
    assert device["name"] == card.findtext("product_name")
    assert device["uuid"] == card.findtext("uuid")
    assert device["pci_bus_id"].lower()[-10:] == card.get("id", "").lower()[-10:]
    assert told["driver_version"] == ElementTree.fromstring(support.smi("-q", "-x")).findtext("driver_version")
    total = int(card.findtext("fb_memory_usage/total", "0").split()[0]) << 20
    assert 0.95 * total < device["memory_bytes"] <= total
    for key in ("pcie_generation_max", "pcie_width_max", "pcie_width"):
        assert (device[key] or None) == link_of(card)[key], key
    # The generation of an idle link is lower: it was read at some time between.
    assert (device["pcie_generation"] or None) in (idle["pcie_generation"], link_of(card)["pcie_generation"])
    links = re.findall(r"Link (\d+): (\S+)", nvlink)
    figures["nvlinks active, nvidia-smi"] = sum("inactive" not in state for _, state in links)
    assert figures["nvlinks active"] == figures["nvlinks active, nvidia-smi"]
