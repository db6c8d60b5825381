// Loaded into the kubelet's process ahead of its own code (`--import`); says over the IPC channel how much has been allocated
// on its heap so far. The kubelet knows nothing of it.
import { getHeapStatistics } from 'node:v8';

process.on('message', () => {
  const { total_allocated_bytes: bytes } = getHeapStatistics() as { total_allocated_bytes?: number };
  process.send?.({ bytes: bytes ?? 0 });
});
process.channel?.unref();
