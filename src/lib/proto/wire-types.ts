// How the value of a protobuf field is written: the lower three bits of its tag.
export const VARINT = 0;
export const FIXED64 = 1;
export const BYTES = 2;
/** Groups are of an older protobuf: they are skipped. */
export const GROUP = 3;
export const END_OF_GROUP = 4;
export const FIXED32 = 5;
