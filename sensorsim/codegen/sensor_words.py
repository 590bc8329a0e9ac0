"""What a sensor's package says of itself: what it does, and what a packet protects."""

from sensorsim._util.terminal import counted
from sensorsim.device.firmware import Firmware
from sensorsim.device.sketch import Sketch


def about(firmware: Firmware) -> str:
    """What the package does, in a sentence."""
    table, size = f"a certified {firmware.table.kind} table", f"{firmware.layout.bytes} bytes"
    if firmware.encoder is not None:
        return (
            f"A record of {firmware.n} features is encoded to {firmware.features} hidden units, and {firmware.k} of "
            f"these {'is' if firmware.k == 1 else 'are'} released through {table}, in a packet of {size}."
        )
    if firmware.sketch is not None:
        return (
            f"Of a record of {firmware.n} features one number is released through {table}, its square along one of "
            f"{firmware.features} public directions, in a packet of {size}."
        )
    return (
        f"A record of {firmware.n} features is released through {table}: {firmware.k} of them "
        f"{'in a packet of' if firmware.k < firmware.n else '(all) in a packet of'} {size}."
    )


def protects(firmware: Firmware) -> str:
    """What one packet says of a record, in a few sentences."""
    said = _held(firmware) + (
        f" None is more than e^{firmware.epsilon} times as likely from one record as from any other (pure, local "
        f"differential privacy of one record), whatever the receiver knows. An epoch of "
        f"{counted(firmware.budget_days, 'day')} allows {counted(firmware.releases, 'release')}, so a person spends at "
        f"most {firmware.releases * firmware.epsilon} in it."
    )
    if firmware.encoder is not None:
        said += (
            f" The record itself stays on the body: it becomes {firmware.features} hidden units, and what is "
            "released of them is covered as the features would be. Averages over many packets do show the hidden "
            "units' means, and with the public weights what they say of the record's."
        )
    return said + (_sketched(firmware.sketch) if firmware.sketch is not None else "")


def _held(firmware: Firmware) -> str:
    if firmware.sketch is not None:
        return "a packet holds the number of a public direction and, with noise, the square of the record along it."
    what = "features" if firmware.encoder is None else "hidden units"
    return f"a packet holds {firmware.k} of {firmware.features} {what}, with noise."


def _sketched(sketch: Sketch) -> str:
    return (
        " The record itself stays on the body. A direction is a list of -1, 0 and 1, one for each feature; a random "
        "word that does not depend on the record picks it. The features, each less its public centre, are added up "
        f"with these signs. The square of the sum over that of R = {sketch.root:.6g}, cut off at 1, lies in 0 ... 1, "
        "so the table covers it as it would one feature. Averages over many packets do show how the features vary "
        "about their centre, and together."
    )
