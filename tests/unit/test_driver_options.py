"""Options for the drivers of a machine, from makefiles of a kernel."""

from __future__ import annotations

from swingbot_worker.testbox.adopt.driver_options import (
    drivers,
    missing,
    modules_used,
    options_by_module,
)

MAKEFILES = [
    "obj-$(CONFIG_IGB) += igb.o",
    "obj-$(CONFIG_IGB) += igb/",
    "obj-$(CONFIG_SATA_AHCI)\t\t+= ahci.o libahci.o",
    "obj-$(CONFIG_AHCI_TEGRA) += ahci_tegra.o libahci.o",
    "obj-$(CONFIG_SND_X) += sound/snd-x.o # snd-y.o",
    "obj-$(CONFIG_I2C_X) := i2c-x.o \\",
    "igb-objs := igb_main.o",
]


def test_a_module_has_the_options_of_the_lines_that_build_it() -> None:
    found = options_by_module(MAKEFILES)
    assert found["igb"] == ("IGB",)
    assert found["libahci"] == ("SATA_AHCI", "AHCI_TEGRA")
    assert found["snd_x"] == ("SND_X",) and "snd_y" not in found
    assert found["i2c_x"] == ("I2C_X",) and "igb_main" not in found


def test_what_the_configuration_builds_in_is_not_missing() -> None:
    used = drivers(
        "driver igb igb\ndriver x-pci snd-x\ndriver ahci \ndriver ;x\ndriver acpi-ged \n"
    )
    assert used == [("igb", "igb"), ("x-pci", "snd_x"), ("ahci", "ahci"), ("acpi-ged", "acpi_ged")]
    config = "CONFIG_SATA_AHCI=y\nCONFIG_IGB=m\n# CONFIG_SND_X is not set\n"
    assert missing(used, options_by_module(MAKEFILES), config, {}) == (
        [("IGB", "igb"), ("SND_X", "x-pci")],
        ["acpi-ged"],
    )


def test_what_a_missing_driver_uses_is_missing_too() -> None:
    uses = modules_used(
        "module scsi_mod sd_mod,libata,\nmodule libata libahci,ahci,\nmodule libahci ahci,\n"
        "module ahci -\nmodule igb_hw igb,\nmodule ;x ahci,\n"
    )
    by_module = options_by_module(
        [
            *MAKEFILES,
            "obj-$(CONFIG_ATA) += libata.o",
            "obj-$(CONFIG_SCSI) += scsi_mod.o",
            "obj-$(CONFIG_IGB_HW) += igb-hw.o",
        ]
    )
    config = "CONFIG_SCSI=m\nCONFIG_IGB=y\nCONFIG_IGB_HW=m\n"
    assert missing([("ahci", "ahci"), ("igb", "igb")], by_module, config, uses) == (
        [("ATA", "ahci"), ("SATA_AHCI", "ahci"), ("SCSI", "ahci")],
        [],
    )
