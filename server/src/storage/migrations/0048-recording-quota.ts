// The recording quota of a namespace, in bytes, where the settings leave it to the server. Null: it is decided when
// the recordings of the namespace are next measured, so that nobody who has many is cut off by an upgrade.
export const recordingQuota = {
  name: 'recording quota',
  statements: (): string[] => ['alter table namespaces add column recording_quota bigint'],
}
