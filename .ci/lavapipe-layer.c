// A Vulkan layer that gives Mesa's lavapipe the ids of SwiftShader, the only driver without a GPU that Chromium lets pages use.
// Its own SwiftShader has no 16-bit floats in shaders, which llama.cpp needs.
#include <string.h>
#include <vulkan/vk_layer.h>
#include <vulkan/vulkan.h>

#define EXPORT __attribute__((visibility("default")))

static PFN_vkGetInstanceProcAddr next;
static PFN_vkGetPhysicalDeviceProperties next_properties;
static PFN_vkGetPhysicalDeviceProperties2 next_properties2;

static void rename_device(VkPhysicalDeviceProperties *properties) {
  properties->vendorID = 0x1AE0;
  properties->deviceID = 0xC0DE;
}

static VKAPI_ATTR void VKAPI_CALL get_properties(VkPhysicalDevice device, VkPhysicalDeviceProperties *properties) {
  next_properties(device, properties);
  rename_device(properties);
}

static VKAPI_ATTR void VKAPI_CALL get_properties2(VkPhysicalDevice device, VkPhysicalDeviceProperties2 *properties) {
  next_properties2(device, properties);
  rename_device(&properties->properties);
}

static VKAPI_ATTR VkResult VKAPI_CALL create_instance(const VkInstanceCreateInfo *info, const VkAllocationCallbacks *allocator,
                                                      VkInstance *instance) {
  VkLayerInstanceCreateInfo *link = (VkLayerInstanceCreateInfo *)info->pNext;
  while (link && !(link->sType == VK_STRUCTURE_TYPE_LOADER_INSTANCE_CREATE_INFO && link->function == VK_LAYER_LINK_INFO)) {
    link = (VkLayerInstanceCreateInfo *)link->pNext;
  }
  if (!link) return VK_ERROR_INITIALIZATION_FAILED;
  next = link->u.pLayerInfo->pfnNextGetInstanceProcAddr;
  link->u.pLayerInfo = link->u.pLayerInfo->pNext;
  const VkResult result = ((PFN_vkCreateInstance)next(VK_NULL_HANDLE, "vkCreateInstance"))(info, allocator, instance);
  if (result != VK_SUCCESS) return result;
  // Asked for now: later they would lead back here, in layers below this one.
  next_properties = (PFN_vkGetPhysicalDeviceProperties)next(*instance, "vkGetPhysicalDeviceProperties");
  next_properties2 = (PFN_vkGetPhysicalDeviceProperties2)next(*instance, "vkGetPhysicalDeviceProperties2");
  return result;
}

static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL get_instance_function(VkInstance instance, const char *name) {
  if (!strcmp(name, "vkGetInstanceProcAddr")) return (PFN_vkVoidFunction)get_instance_function;
  if (!strcmp(name, "vkCreateInstance")) return (PFN_vkVoidFunction)create_instance;
  if (!strcmp(name, "vkGetPhysicalDeviceProperties")) return (PFN_vkVoidFunction)get_properties;
  if (!strncmp(name, "vkGetPhysicalDeviceProperties2", 30)) return (PFN_vkVoidFunction)get_properties2;
  return instance ? next(instance, name) : 0;
}

EXPORT VkResult vkNegotiateLoaderLayerInterfaceVersion(VkNegotiateLayerInterface *version) {
  version->loaderLayerInterfaceVersion = 2;
  version->pfnGetInstanceProcAddr = get_instance_function;
  version->pfnGetDeviceProcAddr = 0;
  version->pfnGetPhysicalDeviceProcAddr = 0;
  return VK_SUCCESS;
}
