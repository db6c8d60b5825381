// Error replies as KubeletErrors: the name stays in `detail.dbusError`, the kind is what callers switch on.
import { KubeletError, type Fault } from '../errors.ts';
import type { Message } from './message.ts';

const KINDS: Readonly<Record<string, Fault>> = {
  'org.freedesktop.DBus.Error.AccessDenied': 'denied',
  'org.freedesktop.DBus.Error.AuthFailed': 'denied',
  'org.freedesktop.DBus.Error.InteractiveAuthorizationRequired': 'denied',
  'org.freedesktop.DBus.Error.FileExists': 'exists',
  'org.freedesktop.DBus.Error.FileNotFound': 'notFound',
  'org.freedesktop.DBus.Error.InvalidArgs': 'invalid',
  'org.freedesktop.DBus.Error.InvalidSignature': 'invalid',
  'org.freedesktop.DBus.Error.LimitsExceeded': 'exhausted',
  'org.freedesktop.DBus.Error.NoMemory': 'exhausted',
  'org.freedesktop.DBus.Error.NoReply': 'deadline',
  'org.freedesktop.DBus.Error.Timeout': 'deadline',
  'org.freedesktop.DBus.Error.TimedOut': 'deadline',
  'org.freedesktop.DBus.Error.NotSupported': 'unimplemented',
  'org.freedesktop.DBus.Error.PropertyReadOnly': 'denied',
  'org.freedesktop.DBus.Error.UnknownInterface': 'unimplemented',
  'org.freedesktop.DBus.Error.UnknownMethod': 'unimplemented',
  'org.freedesktop.DBus.Error.UnknownObject': 'notFound',
  'org.freedesktop.DBus.Error.UnknownProperty': 'unimplemented',
  'org.freedesktop.systemd1.AlreadySubscribed': 'exists',
  'org.freedesktop.systemd1.NoSuchUnit': 'notFound',
  'org.freedesktop.systemd1.UnitExists': 'exists',
};

/** Nobody there, or going away: `unavailable`, like everything this table does not know. */
export function busError(call: string, reply: Message): KubeletError {
  const name = reply.error ?? '';
  const [text] = reply.body;
  const message = typeof text === 'string' && text !== '' ? text : name;
  return new KubeletError(KINDS[name] ?? 'unavailable', `${call}: ${message}`, { detail: { dbusError: name } });
}
