"""A separate loopback address for each replica, so every pod of a gang can listen on its usual port.

Slots are addresses in 127.64.0.0/10, without those that end in 0 or 255, which old software treats as network and
broadcast addresses. Linux answers on all of 127.0.0.0/8; macOS only on 127.0.0.1, unless aliases are added manually.
"""

HOSTS_PER_NET = 254
NETS_PER_BLOCK = 256
BLOCKS = 64
SLOTS = HOSTS_PER_NET * NETS_PER_BLOCK * BLOCKS


def address_of(slot: int) -> str:
    """The address of this slot. Raises ValueError outside of 0 to SLOTS - 1."""
    if not 0 <= slot < SLOTS:
        raise ValueError(f"There are {SLOTS} slots, and no slot {slot}")
    net, host = divmod(slot, HOSTS_PER_NET)
    block, third = divmod(net, NETS_PER_BLOCK)
    return f"127.{64 + block}.{third}.{host + 1}"
