// SPDX-License-Identifier: GPL-2.0

//! The commands of the hardware channel, one small struct each: what follows
//! the header of the request, and of the response.
//!
//! Opcodes and layouts are those of `include/net/mana/{gdma,mana}.h`. A list at
//! the end of a request is not part of the struct; it is handed to the channel
//! beside it.

use zerocopy::{
    FromBytes,
    FromZeros,
    Immutable,
    IntoBytes, //
};
use zerocopy_derive::{
    FromBytes,
    FromZeros,
    Immutable,
    IntoBytes, //
};

use super::wire::{
    DeviceId,
    RequestHeader,
    ResponseHeader, //
};
use crate::gdma::QueueType;

/// A command; the implementing type is the body of its request.
pub(crate) trait Command: IntoBytes + Immutable {
    /// Name for messages.
    const NAME: &'static str;
    /// Number of the command.
    const OPCODE: u32;
    /// Version of the request.
    const VERSION: u16 = 1;
    /// Version of the response that is asked for.
    const RESPONSE_VERSION: u16 = 1;
    /// Whether the request names the function that it is for.
    const ADDRESSED: bool = true;
    /// Whether a device that refuses the command works well without it, so that
    /// the refusal is not worth a message.
    const OPTIONAL: bool = false;
    /// What a user can do about a refusal.
    const HINT: &'static str = "remove and rescan the PCI function";
    /// Body of the response.
    type Response: FromBytes;
}

const FEWER_QUEUES: &str = "try fewer queues (ethtool -L) or smaller rings (ethtool -G)";

/// Asserts the sizes of a command's messages as the C headers give them,
/// headers included.
macro_rules! assert_sizes {
    ($($command:ty: $request:literal => $response:literal),* $(,)?) => {
        $(
            const _: () = {
                assert!(size_of::<RequestHeader>() + size_of::<$command>() == $request);
                assert!(
                    size_of::<ResponseHeader>()
                        + size_of::<<$command as Command>::Response>()
                        == $response
                );
            };
        )*
    };
}

assert_sizes! {
    VerifyVfDriverVersion: 640 => 72,
    QueryMaxResources: 40 => 72,
    ListDevices: 40 => 296,
    RegisterDevice: 40 => 44,
    DeregisterDevice: 40 => 32,
    GenerateTestEqe: 44 => 32,
    CreateQueue: 96 => 36,
    DisableQueue: 52 => 32,
    CreateDmaRegion: 64 => 40,
    DestroyDmaRegion: 48 => 32,
    QueryHwcTimeout: 48 => 40,
    QueryDevConfig: 88 => 80,
    QueryGfStat: 48 => 256,
    ConfigVportTx: 56 => 36,
    CreateWqObj: 96 => 56,
    DestroyWqObj: 56 => 32,
    FenceRq: 48 => 32,
    ConfigVportRx: 120 => 40,
    QueryVportConfig: 44 => 64,
    QueryLinkConfig: 48 => 48,
}

/// Agrees on the protocol and tells the device what the driver can do.
#[derive(Immutable, IntoBytes)]
#[repr(C)]
pub(crate) struct VerifyVfDriverVersion {
    protocol_ver_min: u64,
    protocol_ver_max: u64,
    gd_drv_cap_flags: [u64; 4],
    drv_ver: u64,
    os_type: u32,
    reserved: u32,
    os_ver: [u32; 4],
    reserved_2: u64,
    os_ver_str: [[u8; 128]; 4],
}

impl VerifyVfDriverVersion {
    const GDMA_PROTOCOL_V1: u64 = 1;
    const OS_TYPE_LINUX: u32 = 0x10;

    /// The driver takes `GDMA_QUERY_HWC_TIMEOUT` (also a capability of the
    /// device).
    pub(crate) const HWC_TIMEOUT_RECONFIG: u64 = 1 << 3;
    /// NAPI reports its work right, so that busy polling works.
    const NAPI_WKDONE_FIX: u64 = 1 << 2;
    /// The indirection table has the length that the vPort asks for.
    const VARIABLE_INDIRECTION_TABLE_SUPPORT: u64 = 1 << 5;
    /// The driver acts on link events.
    const HW_VPORT_LINK_AWARE: u64 = 1 << 6;
    /// The device list may have empty entries.
    const DEV_LIST_HOLES_SUP: u64 = 1 << 11;
    /// MSI-X vectors are enabled one by one.
    const DYNAMIC_IRQ_ALLOC_SUPPORT: u64 = 1 << 13;
    /// Each vPort has event queues and vectors of its own.
    const EQ_MSI_UNSHARE_MULTI_VPORT: u64 = 1 << 19;
    /// Statistics are queried all the time.
    const PERIODIC_STATS_QUERY: u64 = 1 << 21;

    const CAPABILITIES: u64 = Self::HWC_TIMEOUT_RECONFIG
        | Self::NAPI_WKDONE_FIX
        | Self::VARIABLE_INDIRECTION_TABLE_SUPPORT
        | Self::HW_VPORT_LINK_AWARE
        | Self::DEV_LIST_HOLES_SUP
        | Self::DYNAMIC_IRQ_ALLOC_SUPPORT
        | Self::EQ_MSI_UNSHARE_MULTI_VPORT
        | Self::PERIODIC_STATS_QUERY;

    /// What this driver speaks and can do. Versions of driver and system are
    /// for information only and stay 0.
    pub(crate) fn new() -> Self {
        Self {
            protocol_ver_min: Self::GDMA_PROTOCOL_V1,
            protocol_ver_max: Self::GDMA_PROTOCOL_V1,
            gd_drv_cap_flags: [Self::CAPABILITIES, 0, 0, 0],
            drv_ver: 0,
            os_type: Self::OS_TYPE_LINUX,
            reserved: 0,
            os_ver: [0; 4],
            reserved_2: 0,
            os_ver_str: [[0; 128]; 4],
        }
    }
}

/// Response to [`VerifyVfDriverVersion`].
#[derive(FromBytes)]
#[repr(C)]
pub(crate) struct DeviceVersion {
    _gdma_protocol_ver: u64,
    /// First word of the device's capabilities.
    pub(crate) pf_cap_flags1: u64,
    _pf_cap_flags: [u64; 3],
}

impl Command for VerifyVfDriverVersion {
    const NAME: &'static str = "GDMA_VERIFY_VF_DRIVER_VERSION";
    const OPCODE: u32 = 1;
    const ADDRESSED: bool = false;
    const HINT: &'static str = "the adapter wants another version of the driver";
    type Response = DeviceVersion;
}

/// Asks for the limits of the function.
#[derive(Immutable, IntoBytes)]
#[repr(C)]
pub(crate) struct QueryMaxResources;

/// Response to [`QueryMaxResources`].
#[derive(FromBytes)]
#[repr(C)]
pub(crate) struct MaxResources {
    _status: u32,
    /// Send queues.
    pub(crate) max_sq: u32,
    /// Receive queues.
    pub(crate) max_rq: u32,
    /// Completion queues.
    pub(crate) max_cq: u32,
    /// Event queues.
    pub(crate) max_eq: u32,
    _max_db: u32,
    _max_mst: u32,
    _max_cq_mod_ctx: u32,
    _max_mod_cq: u32,
    /// MSI-X vectors.
    pub(crate) max_msix: u32,
}

impl Command for QueryMaxResources {
    const NAME: &'static str = "GDMA_QUERY_MAX_RESOURCES";
    const OPCODE: u32 = 2;
    const ADDRESSED: bool = false;
    type Response = MaxResources;
}

/// Asks for the functions of the adapter.
#[derive(Immutable, IntoBytes)]
#[repr(C)]
pub(crate) struct ListDevices;

/// Response to [`ListDevices`].
#[derive(FromBytes)]
#[repr(C)]
pub(crate) struct DeviceList {
    /// Entries that are not empty.
    pub(crate) num_of_devs: u32,
    _reserved: u32,
    /// The functions, with empty entries between them.
    pub(crate) devs: [DeviceId; 64],
}

impl Command for ListDevices {
    const NAME: &'static str = "GDMA_LIST_DEVICES";
    const OPCODE: u32 = 3;
    const ADDRESSED: bool = false;
    type Response = DeviceList;
}

/// Starts the function that the message is addressed to.
#[derive(Immutable, IntoBytes)]
#[repr(C)]
pub(crate) struct RegisterDevice;

/// Response to [`RegisterDevice`].
#[derive(Clone, Copy, FromBytes)]
#[repr(C)]
pub(crate) struct Registered {
    /// Protection domain.
    pub(crate) pdid: u32,
    /// Key for guest physical addresses.
    pub(crate) gpa_mkey: u32,
    /// Doorbell page.
    pub(crate) db_id: u32,
}

impl Command for RegisterDevice {
    const NAME: &'static str = "GDMA_REGISTER_DEVICE";
    const OPCODE: u32 = 4;
    type Response = Registered;
}

/// Stops the function that the message is addressed to.
#[derive(Immutable, IntoBytes)]
#[repr(C)]
pub(crate) struct DeregisterDevice;

impl Command for DeregisterDevice {
    const NAME: &'static str = "GDMA_DEREGISTER_DEVICE";
    const OPCODE: u32 = 5;
    type Response = ();
}

/// Asks for a test event on an event queue.
#[derive(Immutable, IntoBytes)]
#[repr(C)]
pub(crate) struct GenerateTestEqe {
    /// The event queue.
    pub(crate) queue_index: u32,
}

impl Command for GenerateTestEqe {
    const NAME: &'static str = "GDMA_GENERATE_TEST_EQE";
    const OPCODE: u32 = 10;
    type Response = ();
}

/// Creates an event queue.
#[derive(Immutable, IntoBytes)]
#[repr(C)]
pub(crate) struct CreateQueue {
    kind: u32,
    reserved1: u32,
    pdid: u32,
    doorbell_id: u32,
    gdma_region: u64,
    reserved2: u32,
    queue_size: u32,
    log2_throttle_limit: u32,
    eq_pci_msix_index: u32,
    cq_mod_ctx_id: u32,
    cq_parent_eq_id: u32,
    flags: [u8; 4],
    reserved3: u32,
}

impl CreateQueue {
    /// An event queue in `memory` that raises the MSI-X vector `msix`. On success
    /// it owns the DMA region.
    pub(crate) fn event(
        function: &Registered,
        memory: QueueMemory,
        log2_throttle_limit: u32,
        msix: u32,
    ) -> Self {
        Self {
            // CAST: a fieldless enum.
            kind: QueueType::Event as u32,
            reserved1: 0,
            pdid: function.pdid,
            doorbell_id: function.db_id,
            gdma_region: memory.region,
            reserved2: 0,
            queue_size: memory.size,
            log2_throttle_limit,
            eq_pci_msix_index: msix,
            cq_mod_ctx_id: 0,
            cq_parent_eq_id: 0,
            flags: [0; 4],
            reserved3: 0,
        }
    }
}

/// Response to [`CreateQueue`].
#[derive(FromBytes)]
#[repr(C)]
pub(crate) struct QueueCreated {
    /// Id of the queue.
    pub(crate) queue_index: u32,
}

impl Command for CreateQueue {
    const NAME: &'static str = "GDMA_CREATE_QUEUE";
    const OPCODE: u32 = 12;
    const HINT: &'static str = FEWER_QUEUES;
    type Response = QueueCreated;
}

/// Destroys an event queue.
#[derive(Immutable, IntoBytes)]
#[repr(C)]
pub(crate) struct DisableQueue {
    kind: u32,
    queue_index: u32,
    alloc_res_id_on_creation: u32,
}

impl DisableQueue {
    /// The event queue `queue_index`, whose id was given by the device.
    pub(crate) fn event(queue_index: u32) -> Self {
        Self {
            // CAST: a fieldless enum.
            kind: QueueType::Event as u32,
            queue_index,
            alloc_res_id_on_creation: 1,
        }
    }
}

impl Command for DisableQueue {
    const NAME: &'static str = "GDMA_DISABLE_QUEUE";
    const OPCODE: u32 = 13;
    type Response = ();
}

/// Makes memory known to the device; the list of pages follows.
#[derive(Immutable, IntoBytes)]
#[repr(C)]
pub(crate) struct CreateDmaRegion {
    length: u64,
    offset_in_page: u32,
    gdma_page_type: u32,
    page_count: u32,
    page_addr_list_len: u32,
}

impl CreateDmaRegion {
    const GDMA_PAGE_TYPE_4K: u32 = 0;

    /// `pages` pages of 4 KiB, `length` bytes, all in the list.
    pub(crate) fn new(length: u64, pages: u32) -> Self {
        Self {
            length,
            offset_in_page: 0,
            gdma_page_type: Self::GDMA_PAGE_TYPE_4K,
            page_count: pages,
            page_addr_list_len: pages,
        }
    }
}

/// Response to [`CreateDmaRegion`].
#[derive(FromBytes)]
#[repr(C)]
pub(crate) struct DmaRegionCreated {
    /// Handle of the region, not 0.
    pub(crate) dma_region_handle: u64,
}

impl Command for CreateDmaRegion {
    const NAME: &'static str = "GDMA_CREATE_DMA_REGION";
    const OPCODE: u32 = 25;
    const ADDRESSED: bool = false;
    const HINT: &'static str = FEWER_QUEUES;
    type Response = DmaRegionCreated;
}

/// Destroys a DMA region that no queue owns.
#[derive(Immutable, IntoBytes)]
#[repr(C)]
pub(crate) struct DestroyDmaRegion {
    /// Handle of the region.
    pub(crate) dma_region_handle: u64,
}

impl Command for DestroyDmaRegion {
    const NAME: &'static str = "GDMA_DESTROY_DMA_REGION";
    const OPCODE: u32 = 27;
    const ADDRESSED: bool = false;
    type Response = ();
}

/// Proposes how long the driver waits for a response, and asks for the device's
/// choice.
#[derive(FromBytes, Immutable, IntoBytes)]
#[repr(C)]
pub(crate) struct QueryHwcTimeout {
    /// Milliseconds.
    pub(crate) timeout_ms: u32,
    reserved: u32,
}

impl QueryHwcTimeout {
    /// Proposes `timeout_ms`.
    pub(crate) fn new(timeout_ms: u32) -> Self {
        Self {
            timeout_ms,
            reserved: 0,
        }
    }
}

impl Command for QueryHwcTimeout {
    const NAME: &'static str = "GDMA_QUERY_HWC_TIMEOUT";
    const OPCODE: u32 = 84;
    const ADDRESSED: bool = false;
    type Response = Self;
}

/// Asks for the limits of the Ethernet function.
#[derive(Immutable, IntoBytes)]
#[repr(C)]
pub(crate) struct QueryDevConfig {
    mn_drv_cap_flags: [u64; 4],
    proto_major_ver: u32,
    proto_minor_ver: u32,
    proto_micro_ver: u32,
    reserved: u32,
}

impl QueryDevConfig {
    /// Protocol 0.1.1.
    pub(crate) fn new() -> Self {
        Self {
            mn_drv_cap_flags: [0; 4],
            proto_major_ver: 0,
            proto_minor_ver: 1,
            proto_micro_ver: 1,
            reserved: 0,
        }
    }
}

/// Response to [`QueryDevConfig`].
#[derive(FromBytes)]
#[repr(C)]
pub(crate) struct DevConfig {
    _pf_cap_flags: [u64; 4],
    /// Ports.
    pub(crate) max_num_vports: u16,
    _bm_hostmode: u8,
    _reserved: u8,
    _max_num_eqs: u32,
    /// Longest frame, Ethernet header included; valid from version 2 on, and 0
    /// from old devices.
    pub(crate) adapter_mtu: u16,
    _reserved2: u16,
    _reserved3: u32,
}

impl Command for QueryDevConfig {
    const NAME: &'static str = "MANA_QUERY_DEV_CONFIG";
    const OPCODE: u32 = 0x20001;
    const RESPONSE_VERSION: u16 = 3;
    type Response = DevConfig;
}

/// Asks for the statistics of the function. The device takes it as a sign of
/// life.
#[derive(Immutable, IntoBytes)]
#[repr(C)]
pub(crate) struct QueryGfStat {
    req_stats: u64,
}

impl QueryGfStat {
    /// All of them: `STATISTICS_FLAGS_*`, bits 0 to 26.
    pub(crate) fn all() -> Self {
        Self {
            req_stats: (1 << 27) - 1,
        }
    }
}

/// Response to [`QueryGfStat`].
#[derive(Clone, FromBytes)]
#[repr(C)]
pub(crate) struct GfStat {
    _reported_stats: u64,
    /// In the order of `struct mana_query_gf_stat_resp`.
    pub(crate) counters: [u64; 27],
}

impl Command for QueryGfStat {
    const NAME: &'static str = "MANA_QUERY_GF_STAT";
    const OPCODE: u32 = 0x20002;
    const OPTIONAL: bool = true;
    const RESPONSE_VERSION: u16 = 2;
    type Response = GfStat;
}

/// Binds a vPort to a protection domain and a doorbell page.
#[derive(Immutable, IntoBytes)]
#[repr(C)]
pub(crate) struct ConfigVportTx {
    vport: u64,
    pdid: u32,
    doorbell_pageid: u32,
}

impl ConfigVportTx {
    /// Binds `vport` to the resources of `function`.
    pub(crate) fn new(vport: u64, function: &Registered) -> Self {
        Self {
            vport,
            pdid: function.pdid,
            doorbell_pageid: function.db_id,
        }
    }
}

/// Response to [`ConfigVportTx`].
#[derive(FromBytes)]
#[repr(C)]
pub(crate) struct VportTx {
    /// Offset of the vPort that packets carry.
    pub(crate) tx_vport_offset: u16,
    _short_form_allowed: u8,
    _reserved: u8,
}

impl Command for ConfigVportTx {
    const NAME: &'static str = "MANA_CONFIG_VPORT_TX";
    const OPCODE: u32 = 0x20003;
    type Response = VportTx;
}

/// Creates a send or receive queue together with its completion queue.
#[derive(Immutable, IntoBytes)]
#[repr(C)]
pub(crate) struct CreateWqObj {
    vport: u64,
    wq_type: u32,
    reserved: u32,
    wq_gdma_region: u64,
    cq_gdma_region: u64,
    wq_size: u32,
    cq_size: u32,
    cq_moderation_ctx_id: u32,
    cq_parent_qid: u32,
    allow_rqwqe_chain: u8,
    req_cq_moderation: u8,
    cq_moderation_comp: u16,
    cq_moderation_usec: u16,
    reserved2: [u8; 2],
}

/// Memory of a queue, for [`CreateQueue`] and [`CreateWqObj`].
#[derive(Clone, Copy)]
pub(crate) struct QueueMemory {
    /// DMA region.
    pub(crate) region: u64,
    /// Bytes.
    pub(crate) size: u32,
}

impl CreateWqObj {
    /// A work queue of `vport` that completes on a new completion queue with
    /// events on `eq`. On success the object owns both regions. Interrupt
    /// moderation starts at 0, which is off.
    pub(crate) fn new(
        vport: u64,
        wq_type: QueueType,
        wq: QueueMemory,
        cq: QueueMemory,
        eq: u32,
    ) -> Self {
        Self {
            vport,
            // CAST: a fieldless enum.
            wq_type: wq_type as u32,
            reserved: 0,
            wq_gdma_region: wq.region,
            cq_gdma_region: cq.region,
            wq_size: wq.size,
            cq_size: cq.size,
            cq_moderation_ctx_id: 0,
            cq_parent_qid: eq,
            allow_rqwqe_chain: 0,
            req_cq_moderation: 1,
            cq_moderation_comp: 0,
            cq_moderation_usec: 0,
            reserved2: [0; 2],
        }
    }
}

/// Response to [`CreateWqObj`].
#[derive(FromBytes)]
#[repr(C)]
pub(crate) struct WqObj {
    /// Id of the work queue.
    pub(crate) wq_id: u32,
    /// Id of the completion queue.
    pub(crate) cq_id: u32,
    /// Handle of both, not [`INVALID_MANA_HANDLE`].
    pub(crate) wq_obj: u64,
    _cq_moderation: [u8; 8],
}

/// A handle that names nothing.
pub(crate) const INVALID_MANA_HANDLE: u64 = u64::MAX;

impl Command for CreateWqObj {
    const NAME: &'static str = "MANA_CREATE_WQ_OBJ";
    const OPCODE: u32 = 0x20004;
    const VERSION: u16 = 3;
    const RESPONSE_VERSION: u16 = 2;
    const HINT: &'static str = FEWER_QUEUES;
    type Response = WqObj;
}

/// Destroys what [`CreateWqObj`] made.
#[derive(Immutable, IntoBytes)]
#[repr(C)]
pub(crate) struct DestroyWqObj {
    wq_type: u32,
    reserved: u32,
    wq_obj_handle: u64,
}

impl DestroyWqObj {
    /// The object `wq_obj_handle`.
    pub(crate) fn new(wq_type: QueueType, wq_obj_handle: u64) -> Self {
        Self {
            // CAST: a fieldless enum.
            wq_type: wq_type as u32,
            reserved: 0,
            wq_obj_handle,
        }
    }
}

impl Command for DestroyWqObj {
    const NAME: &'static str = "MANA_DESTROY_WQ_OBJ";
    const OPCODE: u32 = 0x20005;
    type Response = ();
}

/// Asks for a fence completion on a receive queue: what completes later came in
/// after the command.
#[derive(Immutable, IntoBytes)]
#[repr(C)]
pub(crate) struct FenceRq {
    /// The object of the receive queue.
    pub(crate) wq_obj_handle: u64,
}

impl Command for FenceRq {
    const NAME: &'static str = "MANA_FENCE_RQ";
    const OPCODE: u32 = 0x20006;
    type Response = ();
}

/// Sets where a vPort's packets go; the indirection table, a list of receive
/// objects, follows.
#[derive(FromZeros, Immutable, IntoBytes)]
#[repr(C)]
pub(crate) struct ConfigVportRx {
    vport: u64,
    num_indir_entries: u16,
    indir_tab_offset: u16,
    rx_enable: u32,
    rss_enable: u32,
    update_default_rxobj: u8,
    update_hashkey: u8,
    update_indir_tab: u8,
    reserved: u8,
    default_rxobj: u64,
    hashkey: [u8; MANA_HASH_KEY_SIZE],
    cqe_coalescing_enable: u8,
    reserved2: [u8; 3],
    rss_hash_types: u16,
    cqe8_coalescing_enable: u8,
    reserved3: u8,
}

/// Bytes of the Toeplitz key.
pub(crate) const MANA_HASH_KEY_SIZE: usize = 40;

impl ConfigVportRx {
    /// `MANA_HASH_ENABLE_SUPPORTED`: IPv4, IPv6, and TCP and UDP over both.
    const HASH_TYPES: u16 = 0x3f;

    // CAST: asserted to be 120.
    const TABLE_OFFSET: u16 = (size_of::<RequestHeader>() + size_of::<Self>()) as u16;

    /// No packets, with a table of `entries` that the device ignores.
    pub(crate) fn disable(vport: u64, entries: u16) -> Self {
        Self {
            vport,
            num_indir_entries: entries,
            indir_tab_offset: Self::TABLE_OFFSET,
            rss_hash_types: Self::HASH_TYPES,
            ..Self::new_zeroed()
        }
    }

    /// Packets are spread by `key` over a table of `entries`, or go to
    /// `default_rxobj` without `rss`.
    pub(crate) fn enable(
        vport: u64,
        entries: u16,
        rss: bool,
        default_rxobj: u64,
        key: &[u8; MANA_HASH_KEY_SIZE],
    ) -> Self {
        Self {
            rx_enable: 1,
            rss_enable: rss.into(),
            update_default_rxobj: 1,
            update_hashkey: 1,
            update_indir_tab: 1,
            default_rxobj,
            hashkey: *key,
            ..Self::disable(vport, entries)
        }
    }
}

/// Response to [`ConfigVportRx`].
#[derive(FromBytes)]
#[repr(C)]
pub(crate) struct VportRx {
    _cqe_coalescing_timeout_ns: u32,
    _reserved: u32,
}

impl Command for ConfigVportRx {
    const NAME: &'static str = "MANA_CONFIG_VPORT_RX";
    const OPCODE: u32 = 0x20007;
    const VERSION: u16 = 5;
    const RESPONSE_VERSION: u16 = 2;
    type Response = VportRx;
}

/// Asks for the properties of a port.
#[derive(Immutable, IntoBytes)]
#[repr(C)]
pub(crate) struct QueryVportConfig {
    /// Number of the port.
    pub(crate) vport_index: u32,
}

/// Response to [`QueryVportConfig`].
#[derive(Clone, Copy, FromBytes)]
#[repr(C)]
pub(crate) struct VportConfig {
    /// Send queues.
    pub(crate) max_num_sq: u32,
    /// Receive queues.
    pub(crate) max_num_rq: u32,
    /// Entries of the indirection table.
    pub(crate) num_indirection_ent: u32,
    _reserved1: u32,
    /// Station address.
    pub(crate) mac_addr: [u8; 6],
    _reserved2: [u8; 2],
    /// Handle of the vPort.
    pub(crate) vport: u64,
}

impl Command for QueryVportConfig {
    const NAME: &'static str = "MANA_QUERY_VPORT_CONFIG";
    const OPCODE: u32 = 0x20008;
    type Response = VportConfig;
}

/// Asks for the speed of a port.
#[derive(Immutable, IntoBytes)]
#[repr(C)]
pub(crate) struct QueryLinkConfig {
    /// Handle of the vPort.
    pub(crate) vport: u64,
}

/// Response to [`QueryLinkConfig`].
#[derive(FromBytes)]
#[repr(C)]
pub(crate) struct LinkConfig {
    _qos_speed_mbps: u32,
    /// Not 0 if the speeds mean nothing.
    pub(crate) qos_unconfigured: u8,
    _reserved1: [u8; 3],
    /// Speed in use, Mbit/s.
    pub(crate) link_speed_mbps: u32,
    _reserved2: [u8; 4],
}

impl Command for QueryLinkConfig {
    const NAME: &'static str = "MANA_QUERY_LINK_CONFIG";
    const OPCODE: u32 = 0x2000a;
    const RESPONSE_VERSION: u16 = 2;
    const OPTIONAL: bool = true;
    type Response = LinkConfig;
}
