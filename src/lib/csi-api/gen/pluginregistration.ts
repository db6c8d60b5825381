// Generated from src/lib/csi-api/proto/pluginregistration.proto by scripts/generate-proto.ts. Do not edit.
import type { FieldSpec, MessageType } from '../../proto/codec.ts';
import type { Rpc } from '../../grpc/rpc.ts';

export type InfoRequest = {
};

export type PluginInfo = {
  type: string;
  name: string;
  endpoint: string;
  supportedVersions: string[];
};

export type RegistrationStatus = {
  pluginRegistered: boolean;
  error: string;
};

export type RegistrationStatusResponse = {
};

const InfoRequestFields = (): readonly FieldSpec[] => (InfoRequestTable ??= [
  ]);
let InfoRequestTable: readonly FieldSpec[] | undefined;
export const InfoRequest: MessageType<InfoRequest> = { spec: { name: 'pluginregistration.InfoRequest', fields: InfoRequestFields } };

const PluginInfoFields = (): readonly FieldSpec[] => (PluginInfoTable ??= [
    { no: 1, name: 'type', type: 'string' },
    { no: 2, name: 'name', type: 'string' },
    { no: 3, name: 'endpoint', type: 'string' },
    { no: 4, name: 'supportedVersions', type: 'string', repeated: true },
  ]);
let PluginInfoTable: readonly FieldSpec[] | undefined;
export const PluginInfo: MessageType<PluginInfo> = { spec: { name: 'pluginregistration.PluginInfo', fields: PluginInfoFields } };

const RegistrationStatusFields = (): readonly FieldSpec[] => (RegistrationStatusTable ??= [
    { no: 1, name: 'pluginRegistered', type: 'bool' },
    { no: 2, name: 'error', type: 'string' },
  ]);
let RegistrationStatusTable: readonly FieldSpec[] | undefined;
export const RegistrationStatus: MessageType<RegistrationStatus> = { spec: { name: 'pluginregistration.RegistrationStatus', fields: RegistrationStatusFields } };

const RegistrationStatusResponseFields = (): readonly FieldSpec[] => (RegistrationStatusResponseTable ??= [
  ]);
let RegistrationStatusResponseTable: readonly FieldSpec[] | undefined;
export const RegistrationStatusResponse: MessageType<RegistrationStatusResponse> = { spec: { name: 'pluginregistration.RegistrationStatusResponse', fields: RegistrationStatusResponseFields } };

export const Registration = {
  getInfo: { path: '/pluginregistration.Registration/GetInfo', request: InfoRequest, response: PluginInfo } satisfies Rpc<InfoRequest, PluginInfo>,
  notifyRegistrationStatus: { path: '/pluginregistration.Registration/NotifyRegistrationStatus', request: RegistrationStatus, response: RegistrationStatusResponse } satisfies Rpc<RegistrationStatus, RegistrationStatusResponse>,
} as const;

