// SPDX-License-Identifier: GPL-2.0

//! The ethtool operations of a port.

use kernel::prelude::*;
use netdev::{
    device::Device,
    ethtool::{
        Channels,
        ExtAck,
        HashFunction,
        LinkSettings,
        Operations,
        Ringparam,
        RxfhChange,
        StringsWriter, //
    },
    lock::{
        OpsLock,
        RtnlLock, //
    },
};
use ring_core::stop::{
    Limits,
    Neighbours, //
};

use crate::{
    nic::{
        Config,
        Nic,
        RSS_KEY_LEN, //
    },
    port::Port, //
};

#[vtable]
impl<N: Nic> Operations for Port<N> {
    fn statistics_count(dev: &Device<Self>) -> u32 {
        let count = dev.nic().keys().count(dev.stats().len());
        u32::try_from(count).unwrap_or(0)
    }

    fn statistics_names(dev: &Device<Self>, names: &mut StringsWriter<'_>) {
        dev.nic().keys().strings(dev.stats().len(), names);
    }

    fn statistics(dev: &Device<Self>, values: &mut [u64], _lock: &OpsLock<'_>) {
        let keys = dev.nic().keys();
        if let Some((port, channels)) = values.split_at_mut_checked(keys.port.len()) {
            dev.nic().port_stats(dev.stats(), port);
            keys.values(dev.stats(), channels);
        }
    }

    fn ringparam(dev: &Device<Self>, _lock: &OpsLock<'_>) -> Ringparam {
        let limits = dev.limits();
        let config = dev.config();
        Ringparam {
            rx_max_pending: limits.rx_entries.max(),
            tx_max_pending: limits.tx_entries.max(),
            rx_pending: config.rx_entries,
            tx_pending: config.tx_entries,
            ..Ringparam::default()
        }
    }

    fn set_ringparam(
        dev: &Device<Self>,
        wanted: &Ringparam,
        extack: &mut ExtAck<'_>,
        lock: &RtnlLock<'_>,
    ) -> Result {
        let limits = dev.limits();
        let config = Config {
            tx_entries: check(&limits.tx_entries, "TX ring", wanted.tx_pending, extack)?,
            rx_entries: check(&limits.rx_entries, "RX ring", wanted.rx_pending, extack)?,
            ..dev.config()
        };
        Self::reconfigure(dev, lock, config)
    }

    fn channels(dev: &Device<Self>, _lock: &OpsLock<'_>) -> Channels {
        Channels {
            max_combined: dev.limits().queues.max(),
            combined: dev.config().queues,
            ..Channels::default()
        }
    }

    fn set_channels(dev: &Device<Self>, wanted: &Channels, lock: &RtnlLock<'_>) -> Result {
        let config = Config {
            queues: dev.limits().queues.check(wanted.combined).or(Err(EINVAL))?,
            ..dev.config()
        };
        Self::reconfigure(dev, lock, config)
    }

    fn rxfh_indir_size(dev: &Device<Self>) -> u32 {
        dev.limits().rss_entries
    }

    fn rxfh_key_size(_dev: &Device<Self>) -> u32 {
        // CAST: A small constant.
        RSS_KEY_LEN as u32
    }

    fn rxfh(
        dev: &Device<Self>,
        indir: Option<&mut [u32]>,
        key: Option<&mut [u8]>,
        _lock: &OpsLock<'_>,
    ) -> Result<HashFunction> {
        dev.read_rss(indir, key);
        Ok(HashFunction::Toeplitz)
    }

    fn set_rxfh(
        dev: &Device<Self>,
        change: &RxfhChange<'_>,
        extack: &mut ExtAck<'_>,
        _lock: &OpsLock<'_>,
    ) -> Result {
        if change.function.is_some_and(|f| f != HashFunction::Toeplitz) {
            extack.set(fmt!("the hash function is toeplitz"));
            return Err(EOPNOTSUPP);
        }
        Self::change_rss(dev, change.indir, change.key)
    }

    fn link_settings(dev: &Device<Self>, _lock: &OpsLock<'_>) -> Result<LinkSettings> {
        let up = dev.carrier_ok();
        Ok(LinkSettings {
            speed: dev.nic().speed().filter(|_| up),
            full_duplex: up.then_some(true),
        })
    }
}

/// Accepts `wanted` if the device can have it, else names what it can have.
fn check(limits: &Limits, what: &str, wanted: u32, extack: &mut ExtAck<'_>) -> Result<u32> {
    limits.check(wanted).map_err(|Neighbours { lower, upper }| {
        match (lower, upper) {
            (Some(lower), Some(upper)) => {
                extack.set(fmt!("{what} of {wanted}: next are {lower} and {upper}"));
            }
            (Some(near), None) | (None, Some(near)) => {
                extack.set(fmt!("{what} of {wanted}: nearest is {near}"));
            }
            (None, None) => extack.set(fmt!("{what} of {wanted} is impossible")),
        }
        EINVAL
    })
}
