// A public key signs certificates only if its owner said so. Those from before have not, so they sign none.

export const certificateAuthorities = {
  name: 'certificate authorities',
  statements(): string[] {
    return ['alter table public_keys add column certificate_authority integer not null default 0']
  },
}
