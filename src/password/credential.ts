/** A stored password as it was understood at load: everything that a verification needs, checked and bounded. */
export type Credential = DigestCredential | DerivedCredential | CryptCredential

/** Compared in microseconds, so in place. */
type DigestCredential =
  | { readonly kind: 'plain'; readonly digest: Uint8Array }
  | { readonly kind: 'sha1'; readonly digest: Uint8Array }

/** Node's own functions, which already run off the event loop. */
export type DerivedCredential =
  | {
      readonly kind: 'argon2id'
      /** KiB. */
      readonly memory: number
      readonly passes: number
      readonly parallelism: number
      readonly salt: Uint8Array
      readonly tag: Uint8Array
    }
  | {
      readonly kind: 'scrypt'
      readonly cost: number
      readonly blockSize: number
      readonly parallelism: number
      readonly salt: Uint8Array
      readonly tag: Uint8Array
    }

/** Written in JavaScript, so they would hold up the event loop: they run in a worker. */
export type CryptCredential =
  | { readonly kind: 'bcrypt'; readonly hash: string }
  | {
      readonly kind: 'md5-crypt'
      readonly magic: '$1$' | '$apr1$'
      readonly salt: string
      readonly digest: string
    }
  | {
      readonly kind: 'sha-crypt'
      readonly algorithm: 'sha256' | 'sha512'
      readonly rounds: number
      readonly salt: string
      readonly digest: string
    }

/** The outcome of reading a stored line. The reason is fit for a log: it never quotes what was stored. */
export type Parsed =
  | { readonly kind: 'credential'; readonly credential: Credential }
  | { readonly kind: 'unusable'; readonly reason: string }

export function understood(credential: Credential): Parsed {
  return { kind: 'credential', credential }
}

export function unusable(reason: string): Parsed {
  return { kind: 'unusable', reason }
}
