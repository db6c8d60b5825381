// What the driver is called: in its sockets, in its CSIDriver object and in the storage class.
export const DRIVER_NAME = 'hostpath.csi.kubelet-dev';
