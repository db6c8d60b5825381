// The recordings were made on cgroup v1 with the cgroupfs driver. What the Go kubelet sends otherwise on cgroup v2 with
// systemd, by its own rules: every difference by name. Nothing else may differ.

type Resources = {
  memorySwapLimitInBytes?: number;
  unified?: Record<string, string>;
  hugepageLimits?: { pageSize: string }[];
};
type Linux = { cgroupParent?: string; resources?: Resources };
type Request = {
  config?: { linux?: Linux };
  sandboxConfig?: { linux?: Linux };
  /** Of UpdateContainerResources. */
  linux?: Resources;
};
type Of = 'sandbox' | 'container';

const DIFFERENCES: Readonly<
  Record<string, (linux: Linux, of: Of, pageSizes: ReadonlySet<string | undefined>) => void>
> = {
  'the parent of a pod is a slice, by its whole path': (linux) => {
    if (linux.cgroupParent) linux.cgroupParent = slicePath(linux.cgroupParent);
  },
  'what is out of memory is killed as a whole': ({ resources }) => {
    if (resources !== undefined) resources.unified = { ...resources.unified, 'memory.oom.group': '1' };
  },
  'no swap is said by a file of the container, not by the sum of memory and swap': ({ resources }, of) => {
    if (resources === undefined) return;
    resources.memorySwapLimitInBytes = 0;
    if (of === 'container') resources.unified = { ...resources.unified, 'memory.swap.max': '0' };
  },
  'huge pages are of the sizes that the machine has': ({ resources }, _of, pageSizes) => {
    if (resources?.hugepageLimits !== undefined)
      resources.hugepageLimits = resources.hugepageLimits.filter(({ pageSize }) => pageSizes.has(pageSize));
  },
};

/** `/kubepods/besteffort/pod1-2` is the slice `kubepods-besteffort-pod1_2.slice` below those of its ancestors. */
function slicePath(path: string): string {
  const parts = path
    .slice(1)
    .split('/')
    .map((part) => part.replaceAll('-', '_'));
  return parts.map((_, i) => `/${parts.slice(0, i + 1).join('-')}.slice`).join('');
}

/** What a recorded request looks like on cgroup v2 with systemd, on a machine with huge pages of these sizes. */
export function onCgroupV2(recorded: unknown, pageSizes: ReadonlySet<string | undefined>): unknown {
  const request = structuredClone(recorded) as Request;
  for (const change of Object.values(DIFFERENCES)) {
    if (request.config?.linux)
      change(request.config.linux, request.sandboxConfig === undefined ? 'sandbox' : 'container', pageSizes);
    if (request.sandboxConfig?.linux) change(request.sandboxConfig.linux, 'sandbox', pageSizes);
    if (request.linux) change({ resources: request.linux }, 'container', pageSizes);
  }
  return request;
}
