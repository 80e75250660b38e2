// SPDX-License-Identifier: GPL-2.0
//! What a MANA driver must never do. `tests/rules.rs` provokes each one.

nic::rules! {
    /// The rules of this model.
    pub RULES:

    // Registers and shared memory.
    REG_ACCESS = "reg-access", "a register that does not exist, is read-only or has another size was accessed";
    SHM_BUSY = "shm-busy", "the shared memory was written while the PF owned it";
    SHM_MESSAGE = "shm-message", "the shared memory held a request that is none";
    SHM_ORDER = "shm-order", "the HWC was established twice, or destroyed without being there";
    SHM_VECTOR = "shm-vector", "the HWC's EQ was given an MSI-X vector that the function does not have";
    HWC_DESTROY_IN_USE = "hwc-destroy-in-use", "the HWC was destroyed while a device was registered";

    // Doorbells.
    DOORBELL_ACCESS = "doorbell-access", "a doorbell page was read, or written with something else than 64 bits at a doorbell";
    DOORBELL_PAGE = "doorbell-page", "a doorbell was rung on a page that does not belong to the queue";
    DOORBELL_RESERVED = "doorbell-reserved", "a doorbell had reserved bits set";
    DOORBELL_QUEUE = "doorbell-queue", "a doorbell was rung for a queue that was never created";
    DOORBELL_DESTROYED = "doorbell-destroyed", "a doorbell was rung for a queue that was destroyed";
    WQ_DOORBELL_ALIGN = "wq-doorbell-align", "a work queue doorbell was no multiple of 32 bytes";
    WQ_DOORBELL_BACKWARD = "wq-doorbell-backward", "a work queue doorbell moved backwards or not at all";
    WQ_DOORBELL_OVERRUN = "wq-doorbell-overrun", "a work queue doorbell announced more than the ring has room for";
    WQ_DOORBELL_PARTIAL = "wq-doorbell-partial", "a work queue doorbell ended inside a WQE";
    RQ_DOORBELL_COUNT = "rq-doorbell-count", "a receive queue doorbell had a wqe_cnt other than 0";
    CQ_DOORBELL_INDEX = "cq-doorbell-index", "a CQ doorbell had an index that the ring does not have";
    CQ_DOORBELL_AHEAD = "cq-doorbell-ahead", "a CQ doorbell consumed entries that were never written, or moved backwards";
    CQ_EIGHT_WRAPS = "cq-eight-wraps", "a CQ wrapped more than 8 times without a doorbell";
    EQ_DOORBELL_INDEX = "eq-doorbell-index", "an EQ doorbell had an index that the ring does not have";
    EQ_DOORBELL_AHEAD = "eq-doorbell-ahead", "an EQ doorbell consumed entries that were never written, or moved backwards";
    EQ_OVERFLOW = "eq-overflow", "an EQ was full when an event came";
    DIM_UNSUPPORTED = "dim-unsupported", "moderation was changed by doorbell although the device does not offer it";

    // Hardware channel.
    HWC_WQE = "hwc-wqe", "an HWC WQE was not 24 bytes of OOB and one element";
    HWC_OOB = "hwc-oob", "the OOB of an HWC message named other queues than the HWC's, or had reserved bits set";
    HWC_MESSAGE = "hwc-message", "an HWC message had a wrong header or a size other than its WQE says";
    HWC_DEPTH = "hwc-depth", "more HWC messages were in flight than the channel's depth, or one id twice";
    HWC_NO_BUFFER = "hwc-no-buffer", "no HWC receive buffer was posted for an answer, or it was too small";
    COMMAND_UNKNOWN = "command-unknown", "a command that a VF does not have was sent";
    COMMAND_SIZE = "command-size", "a command was shorter than its layout";
    COMMAND_DEVICE = "command-device", "a command was addressed to the wrong device";
    COMMAND_ORDER = "command-order", "a command came before the one that must precede it";
    COMMAND_VALUE = "command-value", "a command had a value that the device does not take, or reserved fields set";

    // Memory.
    REGION_LAYOUT = "region-layout", "a DMA region had a wrong length, offset, page list or page alignment";
    REGION_HANDLE = "region-handle", "a DMA region handle was used that is not valid, or not any more";
    REGION_SIZE = "region-size", "a queue was larger or smaller than its DMA region";
    REGION_IN_USE = "region-in-use", "a DMA region that belongs to a queue was destroyed or used again";
    REGION_LEAK = "region-leak", "DMA regions were left when the device was deregistered";

    // Queues and ports.
    QUEUE_SIZE = "queue-size", "a queue's size was no power of two of at least 4096 bytes";
    QUEUE_OWNER = "queue-owner", "a queue was created for another protection domain or doorbell page than the device's";
    QUEUE_HANDLE = "queue-handle", "a queue or object was named that does not exist, or is of another type";
    QUEUE_LIMIT = "queue-limit", "more queues were created than the device offers";
    QUEUE_LEAK = "queue-leak", "queues were left when the device was deregistered";
    EQ_VECTOR = "eq-vector", "an EQ was given an MSI-X vector that the function does not have";
    EQ_IN_USE = "eq-in-use", "an EQ was destroyed while a CQ reported to it";
    SQ_BUSY = "sq-busy", "a send queue was destroyed while packets were not completed";
    RQ_STEERED = "rq-steered", "a receive queue was destroyed while packets were steered to it";
    VPORT_HANDLE = "vport-handle", "a port was named that does not exist";
    VPORT_ORDER = "vport-order", "queues were created on a port before it was configured";
    STEER_TABLE = "steer-table", "the indirection table had a wrong size or place, or named something that is no RQ of the port";
    STEER_DEFAULT = "steer-default", "receiving was enabled without a default RQ";

    // Work queue entries.
    WQE_SIZE = "wqe-size", "a WQE was larger than its queue allows or had no element";
    WQE_RESERVED = "wqe-reserved", "a WQE had reserved bits set";
    WQE_OOB_SIZE = "wqe-oob-size", "a WQE had an inline OOB of a size that its queue or packet format does not have";
    SGE_KEY = "sge-key", "an element had another memory key than the device's";
    SGE_EMPTY = "sge-empty", "an element had length 0";
    RQE_LSO = "rqe-lso", "a receive WQE had fields set that only sent packets have";

    // Packets.
    TX_OOB_CQ = "tx-oob-cq", "a packet named another CQ than its queue's";
    TX_OOB_VSQ = "tx-oob-vsq", "a packet had a vsq_frame that is not its queue's";
    TX_OOB_VPORT = "tx-oob-vport", "a packet had a vPort offset that is not its port's, or one in the field of the other format";
    TX_OOB_RESERVED = "tx-oob-reserved", "a packet had reserved OOB bits set, or an unknown format";
    TX_OOB_ENCAP = "tx-oob-encap", "a packet asked for tunnel offload, which this device does not have";
    TX_OOB_IP = "tx-oob-ip", "is_outer_ipv4/is_outer_ipv6 did not fit the packet";
    TX_OOB_PROTOCOL = "tx-oob-protocol", "a TCP or UDP checksum was asked for a packet that is not TCP or UDP";
    TX_OOB_TRANS_OFF = "tx-oob-trans-off", "trans_off did not point to the TCP or UDP header";
    TX_CSUM_SEED = "tx-csum-seed", "the checksum field of an offloaded packet was not the pseudo header's sum";
    TX_LSO_HEADER = "tx-lso-header", "the first element of an LSO packet was not exactly its headers, or last_vbytes differed";
    TX_LSO_MSS = "tx-lso-mss", "an LSO packet had a segment size of 0 or one that does not fit the MTU, or no payload";
    TX_LSO_FLAGS = "tx-lso-flags", "an LSO packet did not ask for its IP and TCP checksums, or did not say which IP it is";
    TX_LSO_SEED = "tx-lso-seed", "an LSO packet's IP length, IP checksum or TCP checksum was not prepared";
}
