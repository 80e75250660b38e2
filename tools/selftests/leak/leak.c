// SPDX-License-Identifier: GPL-2.0
/*
 * Loses memory on purpose, to show which of the kernel's own checks see it.
 *
 * Writing to the module parameter "lose" loses some memory of each kind that a
 * driver has. Nothing gives it back but a reboot. Each kind is lost in a
 * function of its own, whose name the reports of the kernel show.
 */

#include <linux/dma-mapping.h>
#include <linux/module.h>
#include <linux/percpu.h>
#include <linux/platform_device.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#define OBJECTS	10

static struct platform_device *device;

static noinline bool lose_slab(void)
{
	return kzalloc(200, GFP_KERNEL);
}

static noinline bool lose_vmalloc(void)
{
	return vzalloc(4 * PAGE_SIZE);
}

static noinline bool lose_percpu(void)
{
	return __alloc_percpu(64, 8);
}

static noinline bool lose_pages(void)
{
	return alloc_pages(GFP_KERNEL, 1);
}

static noinline bool lose_coherent(void)
{
	dma_addr_t addr;

	return dma_alloc_coherent(&device->dev, PAGE_SIZE, &addr, GFP_KERNEL);
}

static noinline bool lose_mapping(void)
{
	void *data = kmalloc(512, GFP_KERNEL);
	dma_addr_t addr;

	if (!data)
		return false;
	addr = dma_map_single(&device->dev, data, 512, DMA_TO_DEVICE);
	kfree(data);
	return !dma_mapping_error(&device->dev, addr);
}

static int lose(const char *value, const struct kernel_param *param)
{
	bool (*const ways[])(void) = {
		lose_slab, lose_vmalloc, lose_percpu, lose_pages, lose_coherent,
		lose_mapping,
	};

	for (unsigned int way = 0; way < ARRAY_SIZE(ways); way++)
		for (unsigned int i = 0; i < OBJECTS; i++)
			if (!ways[way]())
				return -ENOMEM;
	return 0;
}

static const struct kernel_param_ops lose_ops = { .set = lose };
module_param_cb(lose, &lose_ops, NULL, 0200);
MODULE_PARM_DESC(lose, "write anything to lose memory");

static int __init leak_init(void)
{
	const struct platform_device_info info = {
		.name = "leak",
		.id = PLATFORM_DEVID_NONE,
		.dma_mask = DMA_BIT_MASK(64),
	};

	device = platform_device_register_full(&info);
	return PTR_ERR_OR_ZERO(device);
}
module_init(leak_init);

static void __exit leak_exit(void)
{
	platform_device_unregister(device);
}
module_exit(leak_exit);

MODULE_DESCRIPTION("Loses memory on purpose");
MODULE_LICENSE("GPL");
