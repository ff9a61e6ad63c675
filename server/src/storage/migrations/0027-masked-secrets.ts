// Secrets in what is recorded are masked; a namespace may add texts that come before its
// own, or switch it off.

export const maskedSecrets = {
  name: 'masked secrets',
  statements(): string[] {
    return [
      'alter table namespaces add column mask_secrets integer not null default 1',
      "alter table namespaces add column mask_after text not null default '[]'",
      'alter table sessions add column secrets_masked integer not null default 0',
    ]
  },
}
