// SPDX-License-Identifier: GPL-2.0
//! Commands and answers that travel over the hardware channel (HWC).
//!
//! Source of every layout: `include/net/mana/{gdma,mana}.h` ("HW DATA").

use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Command codes (`enum gdma_request_type`, `enum mana_command_code`).
pub mod code {
    /// Protocol version and capabilities.
    pub const VERIFY_VF_DRIVER_VERSION: u32 = 1;
    /// Limits of the function.
    pub const QUERY_MAX_RESOURCES: u32 = 2;
    /// Devices behind the function.
    pub const LIST_DEVICES: u32 = 3;
    /// Use a device.
    pub const REGISTER_DEVICE: u32 = 4;
    /// Stop using a device.
    pub const DEREGISTER_DEVICE: u32 = 5;
    /// Post a test event on an EQ.
    pub const GENERATE_TEST_EQE: u32 = 10;
    /// Create an EQ.
    pub const CREATE_QUEUE: u32 = 12;
    /// Destroy an EQ.
    pub const DISABLE_QUEUE: u32 = 13;
    /// Describe memory to the device.
    pub const CREATE_DMA_REGION: u32 = 25;
    /// The rest of a long page list.
    pub const DMA_REGION_ADD_PAGES: u32 = 26;
    /// Forget memory that no queue took over.
    pub const DESTROY_DMA_REGION: u32 = 27;
    /// How long the driver waits for an answer.
    pub const QUERY_HWC_TIMEOUT: u32 = 84;
    /// Ports and frame size of the device.
    pub const QUERY_DEV_CONFIG: u32 = 0x20001;
    /// Statistics of the function.
    pub const QUERY_GF_STAT: u32 = 0x20002;
    /// Enable sending on a port.
    pub const CONFIG_VPORT_TX: u32 = 0x20003;
    /// Create a work queue with its CQ.
    pub const CREATE_WQ_OBJ: u32 = 0x20004;
    /// Destroy a work queue with its CQ.
    pub const DESTROY_WQ_OBJ: u32 = 0x20005;
    /// Completion after everything that an RQ received.
    pub const FENCE_RQ: u32 = 0x20006;
    /// Steering of received packets.
    pub const CONFIG_VPORT_RX: u32 = 0x20007;
    /// Limits and address of a port.
    pub const QUERY_VPORT_CONFIG: u32 = 0x20008;
    /// Speed of a port.
    pub const QUERY_LINK_CONFIG: u32 = 0x2000a;
    /// Limit the speed of a port.
    pub const SET_BW_CLAMP: u32 = 0x2000b;
    /// Statistics of the physical port.
    pub const QUERY_PHY_STAT: u32 = 0x2000c;
}

/// The name of a command, as the counters show it.
pub fn name(code: u32) -> &'static str {
    match code {
        code::VERIFY_VF_DRIVER_VERSION => "VERIFY_VF_DRIVER_VERSION",
        code::QUERY_MAX_RESOURCES => "QUERY_MAX_RESOURCES",
        code::LIST_DEVICES => "LIST_DEVICES",
        code::REGISTER_DEVICE => "REGISTER_DEVICE",
        code::DEREGISTER_DEVICE => "DEREGISTER_DEVICE",
        code::GENERATE_TEST_EQE => "GENERATE_TEST_EQE",
        code::CREATE_QUEUE => "CREATE_QUEUE",
        code::DISABLE_QUEUE => "DISABLE_QUEUE",
        code::CREATE_DMA_REGION => "CREATE_DMA_REGION",
        code::DMA_REGION_ADD_PAGES => "DMA_REGION_ADD_PAGES",
        code::DESTROY_DMA_REGION => "DESTROY_DMA_REGION",
        code::QUERY_HWC_TIMEOUT => "QUERY_HWC_TIMEOUT",
        code::QUERY_DEV_CONFIG => "QUERY_DEV_CONFIG",
        code::QUERY_GF_STAT => "QUERY_GF_STAT",
        code::CONFIG_VPORT_TX => "CONFIG_VPORT_TX",
        code::CREATE_WQ_OBJ => "CREATE_WQ_OBJ",
        code::DESTROY_WQ_OBJ => "DESTROY_WQ_OBJ",
        code::FENCE_RQ => "FENCE_RQ",
        code::CONFIG_VPORT_RX => "CONFIG_VPORT_RX",
        code::QUERY_VPORT_CONFIG => "QUERY_VPORT_CONFIG",
        code::QUERY_LINK_CONFIG => "QUERY_LINK_CONFIG",
        code::SET_BW_CLAMP => "SET_BW_CLAMP",
        code::QUERY_PHY_STAT => "QUERY_PHY_STAT",
        _ => "unknown",
    }
}

/// Queue types (`enum gdma_queue_type`).
pub mod queue_type {
    /// Send queue.
    pub const SQ: u32 = 1;
    /// Receive queue.
    pub const RQ: u32 = 2;
    /// Event queue.
    pub const EQ: u32 = 4;
}

/// Status words of answers. The driver only tells zero, "unsupported" and the rest apart.
pub mod status {
    /// Done.
    pub const OK: u32 = 0;
    /// A parameter is wrong.
    pub const INVALID: u32 = 0x57;
    /// A limit of the device is reached.
    pub const NO_RESOURCES: u32 = 0x5aa;
    /// Made to fail by a knob.
    pub const INJECTED: u32 = 0x1f;
    /// `GDMA_STATUS_CMD_UNSUPPORTED`.
    pub const UNSUPPORTED: u32 = u32::MAX;
}

/// Device id of the HWC: type 1, instance 0.
pub const DEVICE_HWC: u32 = 1;
/// Device id of the Ethernet device: type 2, instance 0.
pub const DEVICE_MANA: u32 = 2;

macro_rules! message {
    ($($(#[$meta:meta])* $name:ident { $($(#[$field_meta:meta])* $field:ident: $ty:ty,)* })+) => {$(
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
        #[repr(C)]
        pub struct $name { $($(#[$field_meta])* pub $field: $ty,)* }
    )+};
}

message! {
    /// Header of every message (`struct gdma_msg_hdr`).
    MsgHdr {
        /// 0 = standard.
        hdr_type: U32,
        /// The command.
        msg_type: U32,
        /// Version of the layout.
        msg_version: U16,
        /// Slot of the driver that the answer belongs to.
        hwc_msg_id: U16,
        /// Size of the message, headers included, bytes.
        msg_size: U32,
    }
    /// Start of every request (`struct gdma_req_hdr`).
    ReqHdr {
        /// This message.
        req: MsgHdr,
        /// The answer that the driver expects.
        resp: MsgHdr,
        /// Addressed device.
        dev_id: U32,
        /// Echoed in the answer.
        activity_id: U32,
    }
    /// Start of every answer (`struct gdma_resp_hdr`).
    RespHdr {
        /// This message.
        response: MsgHdr,
        /// Device of the request.
        dev_id: U32,
        /// Of the request.
        activity_id: U32,
        /// See [`status`].
        status: U32,
        /// Zero.
        reserved: U32,
    }
    /// GENERATE_TEST_EQE.
    TestEqeReq {
        /// The EQ.
        queue_index: U32,
    }
    /// VERIFY_VF_DRIVER_VERSION.
    VerifyReq {
        /// Oldest protocol that the driver speaks.
        protocol_ver_min: U64,
        /// Newest protocol that the driver speaks.
        protocol_ver_max: U64,
        /// `GDMA_DRV_CAP_FLAG_1_*` and three words of zero.
        gd_drv_cap_flags: [U64; 4],
        /// Unused.
        drv_ver: U64,
        /// 0x10 = Linux.
        os_type: U32,
        /// Zero.
        reserved: U32,
        /// Major, minor, build, platform.
        os_ver: [U32; 4],
        /// Zero.
        reserved_2: U64,
        /// Free text.
        os_ver_str: [[u8; 128]; 4],
    }
    /// VERIFY_VF_DRIVER_VERSION.
    VerifyResp {
        /// Protocol to use.
        gdma_protocol_ver: U64,
        /// `pf_cap_flags1` to 4.
        pf_cap_flags: [U64; 4],
    }
    /// QUERY_MAX_RESOURCES.
    MaxResourcesResp {
        /// Zero.
        status: U32,
        /// Send queues.
        max_sq: U32,
        /// Receive queues.
        max_rq: U32,
        /// Completion queues.
        max_cq: U32,
        /// Event queues.
        max_eq: U32,
        /// Doorbell pages.
        max_db: U32,
        /// Memory keys.
        max_mst: U32,
        /// Moderation contexts.
        max_cq_mod_ctx: U32,
        /// CQs with moderation.
        max_mod_cq: U32,
        /// MSI-X vectors.
        max_msix: U32,
    }
    /// LIST_DEVICES.
    ListDevicesResp {
        /// Used entries.
        num_of_devs: U32,
        /// Zero.
        reserved: U32,
        /// type:16, instance:16; zero = hole.
        devs: [U32; 64],
    }
    /// REGISTER_DEVICE.
    RegisterResp {
        /// Protection domain.
        pdid: U32,
        /// Memory key for all of the function's memory.
        gpa_mkey: U32,
        /// Doorbell page.
        db_id: U32,
    }
    /// CREATE_QUEUE.
    CreateQueueReq {
        /// See [`queue_type`].
        queue_type: U32,
        /// Zero.
        reserved1: U32,
        /// Protection domain.
        pdid: U32,
        /// Doorbell page.
        doorbell_id: U32,
        /// Memory of the ring.
        gdma_region: U64,
        /// Zero.
        reserved2: U32,
        /// Size of the ring, bytes.
        queue_size: U32,
        /// Event throttling.
        log2_throttle_limit: U32,
        /// MSI-X vector of an EQ.
        eq_pci_msix_index: U32,
        /// Moderation context of a CQ.
        cq_mod_ctx_id: U32,
        /// EQ of a CQ.
        cq_parent_eq_id: U32,
        /// rq_drop_on_overrun, rq_err_on_wqe_overflow, rq_chain_rec_wqes, sq_hw_db.
        wq_flags: [u8; 4],
        /// Zero.
        reserved3: U32,
    }
    /// CREATE_QUEUE.
    CreateQueueResp {
        /// Id of the queue.
        queue_index: U32,
    }
    /// DISABLE_QUEUE.
    DisableQueueReq {
        /// See [`queue_type`].
        queue_type: U32,
        /// Id of the queue.
        queue_index: U32,
        /// 1: the id was made by CREATE_QUEUE.
        alloc_res_id_on_creation: U32,
    }
    /// CREATE_DMA_REGION; the page list follows.
    CreateRegionReq {
        /// Size of the region, bytes.
        length: U64,
        /// Offset in the first page.
        offset_in_page: U32,
        /// 0 = 4 KiB pages.
        gdma_page_type: U32,
        /// Pages of the region.
        page_count: U32,
        /// Pages in this message.
        page_addr_list_len: U32,
    }
    /// CREATE_DMA_REGION.
    CreateRegionResp {
        /// Handle of the region.
        dma_region_handle: U64,
    }
    /// DMA_REGION_ADD_PAGES; the page list follows.
    AddPagesReq {
        /// Handle of the region.
        dma_region_handle: U64,
        /// Pages in this message.
        page_addr_list_len: U32,
        /// Zero.
        reserved3: U32,
    }
    /// DESTROY_DMA_REGION.
    DestroyRegionReq {
        /// Handle of the region.
        dma_region_handle: U64,
    }
    /// QUERY_HWC_TIMEOUT, both ways.
    HwcTimeout {
        /// Time the driver waits for an answer, ms.
        timeout_ms: U32,
        /// Zero.
        reserved: U32,
    }
    /// QUERY_DEV_CONFIG.
    DevConfigReq {
        /// Capabilities of the driver.
        mn_drv_cap_flags: [U64; 4],
        /// Major, minor, micro.
        proto_ver: [U32; 3],
        /// Zero.
        reserved: U32,
    }
    /// QUERY_DEV_CONFIG.
    DevConfigResp {
        /// `pf_cap_flags1` to 4.
        pf_cap_flags: [U64; 4],
        /// Ports.
        max_num_vports: U16,
        /// Bare metal host mode (v3).
        bm_hostmode: u8,
        /// Zero.
        reserved: u8,
        /// Event queues.
        max_num_eqs: U32,
        /// Largest frame, Ethernet header included, bytes (v2).
        adapter_mtu: U16,
        /// Zero.
        reserved2: U16,
        /// Zero.
        reserved3: U32,
    }
    /// QUERY_GF_STAT and QUERY_PHY_STAT.
    StatReq {
        /// Bits of the wanted values.
        req_stats: U64,
    }
    /// QUERY_GF_STAT: a word per bit of the request, in the order of [`crate::stats::GF_STATS`].
    GfStatResp {
        /// Bits of the reported values.
        reported_stats: U64,
        /// The values.
        values: [U64; 27],
    }
    /// QUERY_PHY_STAT.
    PhyStatResp {
        /// Bits of the reported values.
        reported_stats: U64,
        /// Drops in and out.
        drops: [U64; 2],
        /// Packets of traffic class 0 to 7, in and out.
        packets: [[U64; 2]; 8],
        /// Bytes of traffic class 0 to 7, in and out.
        bytes: [[U64; 2]; 8],
        /// Pause frames of traffic class 0 to 7, in and out.
        pause: [[U64; 2]; 8],
    }
    /// CONFIG_VPORT_TX.
    ConfigVportReq {
        /// The port.
        vport: U64,
        /// Protection domain of its queues.
        pdid: U32,
        /// Doorbell page of its queues.
        doorbell_pageid: U32,
    }
    /// CONFIG_VPORT_TX.
    ConfigVportResp {
        /// Goes into the OOB of each packet.
        tx_vport_offset: U16,
        /// Short-format packets are allowed.
        short_form_allowed: u8,
        /// Zero.
        reserved: u8,
    }
    /// CREATE_WQ_OBJ.
    CreateWqObjReq {
        /// The port.
        vport: U64,
        /// SQ or RQ.
        wq_type: U32,
        /// Zero.
        reserved: U32,
        /// Memory of the work queue.
        wq_gdma_region: U64,
        /// Memory of the completion queue.
        cq_gdma_region: U64,
        /// Size of the work queue, bytes.
        wq_size: U32,
        /// Size of the completion queue, bytes.
        cq_size: U32,
        /// Moderation context.
        cq_moderation_ctx_id: U32,
        /// EQ of the completion queue.
        cq_parent_qid: U32,
        /// V2.
        allow_rqwqe_chain: u8,
        /// V3: moderate the CQ's events.
        req_cq_moderation: u8,
        /// V3: completions per event.
        cq_moderation_comp: U16,
        /// V3: delay of an event, us.
        cq_moderation_usec: U16,
        /// Zero.
        reserved2: [u8; 2],
    }
    /// CREATE_WQ_OBJ.
    CreateWqObjResp {
        /// Id of the work queue.
        wq_id: U32,
        /// Id of the completion queue.
        cq_id: U32,
        /// Handle of both.
        wq_obj: U64,
        /// V2: completions per event.
        cq_moderation_comp: U16,
        /// V2: delay of an event, us.
        cq_moderation_usec: U16,
        /// V2: moderation is on.
        cq_moderation_enabled: u8,
        /// Zero.
        reserved1: [u8; 3],
    }
    /// DESTROY_WQ_OBJ.
    DestroyWqObjReq {
        /// SQ or RQ.
        wq_type: U32,
        /// Zero.
        reserved: U32,
        /// Handle of CREATE_WQ_OBJ.
        wq_obj_handle: U64,
    }
    /// FENCE_RQ.
    FenceRqReq {
        /// Handle of CREATE_WQ_OBJ.
        wq_obj_handle: U64,
    }
    /// CONFIG_VPORT_RX; the indirection table lies at `indir_tab_offset` from the message's start.
    ConfigRxReq {
        /// The port.
        vport: U64,
        /// Entries of the table.
        num_indir_entries: U16,
        /// Offset of the table, bytes.
        indir_tab_offset: U16,
        /// Receive packets.
        rx_enable: U32,
        /// Spread packets by hash.
        rss_enable: U32,
        /// Take `default_rxobj` over.
        update_default_rxobj: u8,
        /// Take `hashkey` over.
        update_hashkey: u8,
        /// Take the table over.
        update_indir_tab: u8,
        /// Zero.
        reserved: u8,
        /// Object for packets without hash.
        default_rxobj: U64,
        /// Toeplitz key.
        hashkey: [u8; 40],
        /// Up to four packets per CQE.
        cqe_coalescing_enable: u8,
        /// Zero.
        reserved2: [u8; 3],
        /// Hash types to compute (v5).
        rss_hash_types: U16,
        /// Up to eight packets per CQE (v5).
        cqe8_coalescing_enable: u8,
        /// Zero.
        reserved3: u8,
    }
    /// CONFIG_VPORT_RX.
    ConfigRxResp {
        /// How long a packet waits for others, ns (v2).
        cqe_coalescing_timeout_ns: U32,
        /// Zero.
        reserved1: U32,
    }
    /// QUERY_VPORT_CONFIG.
    VportConfigReq {
        /// Number of the port.
        vport_index: U32,
    }
    /// QUERY_VPORT_CONFIG.
    VportConfigResp {
        /// Send queues.
        max_num_sq: U32,
        /// Receive queues.
        max_num_rq: U32,
        /// Entries of the indirection table.
        num_indirection_ent: U32,
        /// Zero.
        reserved1: U32,
        /// Address of the port.
        mac_addr: [u8; 6],
        /// Zero.
        reserved2: [u8; 2],
        /// Handle of the port.
        vport: U64,
    }
    /// QUERY_LINK_CONFIG.
    LinkConfigReq {
        /// The port.
        vport: U64,
    }
    /// QUERY_LINK_CONFIG.
    LinkConfigResp {
        /// Speed of the service, Mbit/s.
        qos_speed_mbps: U32,
        /// There is no service limit.
        qos_unconfigured: u8,
        /// Zero.
        reserved1: [u8; 3],
        /// Speed now, Mbit/s.
        link_speed_mbps: U32,
        /// Zero.
        reserved2: U32,
    }
    /// SET_BW_CLAMP.
    BwClampReq {
        /// The port.
        vport: U64,
        /// 1 = clamp, 0 = do not.
        enable_clamping: U32,
        /// The limit, Mbit/s.
        link_speed_mbps: U32,
    }
    /// SET_BW_CLAMP.
    BwClampResp {
        /// There is no service limit.
        qos_unconfigured: u8,
        /// Zero.
        reserved: [u8; 7],
    }
}

/// Size of [`ReqHdr`], bytes.
pub const REQ_HDR: usize = size_of::<ReqHdr>();
/// Size of [`RespHdr`], bytes.
pub const RESP_HDR: usize = size_of::<RespHdr>();

const _: () = {
    assert!(REQ_HDR == 40 && RESP_HDR == 32);
    assert!(REQ_HDR + size_of::<VerifyReq>() == 640);
    assert!(REQ_HDR + size_of::<CreateQueueReq>() == 96);
    assert!(REQ_HDR + size_of::<CreateRegionReq>() == 64);
    assert!(REQ_HDR + size_of::<CreateWqObjReq>() == 96);
    assert!(RESP_HDR + size_of::<CreateWqObjResp>() == 56);
    assert!(REQ_HDR + size_of::<ConfigRxReq>() == 120);
    assert!(RESP_HDR + size_of::<DevConfigResp>() == 80);
    assert!(RESP_HDR + size_of::<GfStatResp>() == 256);
    assert!(RESP_HDR + size_of::<VportConfigResp>() == 64);
};
