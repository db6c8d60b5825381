// HTTP/2 error codes (RFC 9113, section 7), and the error of a peer that breaks the protocol.

export const ErrorCode = {
  None: 0,
  Protocol: 1,
  Internal: 2,
  FlowControl: 3,
  SettingsTimeout: 4,
  StreamClosed: 5,
  FrameSize: 6,
  RefusedStream: 7,
  Cancel: 8,
  Compression: 9,
  Connect: 10,
  EnhanceYourCalm: 11,
  InadequateSecurity: 12,
  Http11Required: 13,
} as const;

const NAMES = [
  'NO_ERROR',
  'PROTOCOL_ERROR',
  'INTERNAL_ERROR',
  'FLOW_CONTROL_ERROR',
  'SETTINGS_TIMEOUT',
  'STREAM_CLOSED',
  'FRAME_SIZE_ERROR',
  'REFUSED_STREAM',
  'CANCEL',
  'COMPRESSION_ERROR',
  'CONNECT_ERROR',
  'ENHANCE_YOUR_CALM',
  'INADEQUATE_SECURITY',
  'HTTP_1_1_REQUIRED',
] as const;

export const errorName = (code: number): string => NAMES[code] ?? String(code);

/** The peer broke the protocol: the whole connection ends with this code. */
export class ProtocolError extends Error {
  readonly code: number;

  constructor(code: number, what: string) {
    super(`HTTP/2 ${errorName(code)}: ${what}`);
    this.name = 'ProtocolError';
    this.code = code;
  }
}
