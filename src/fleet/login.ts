import type { StoreConfig } from '../config/store-fields.ts'
import type { StoreAddress } from '../config/store-url.ts'
import { readAuthorities, readSecretLine } from '../system/named-file.ts'
import type { Login } from './connection.ts'

/** How to reach a shared store: the section `store`, and the decoded URL of `tokens.store`. */
export type StoreSettings = StoreConfig & { readonly address: StoreAddress }

/** How many replicas have to confirm a write: `store.replicas` or its default, 1 where a replica can take over. */
export function wantedReplicas({ replicas, address }: StoreSettings): number {
  return replicas ?? (address.kind === 'sentinel' || address.kind === 'cluster' ? 1 : 0)
}

/** How to log in, read anew for each connection: a rotated password or certificate needs no restart. */
export type Account = Pick<Login, 'user' | 'password' | 'tls'>

/** Reads the files of the account. Rejects with a `SetupError` that names the key. */
export async function readAccount({ address, passwordFile, tls }: StoreSettings): Promise<Account> {
  const password =
    passwordFile === undefined ? address.password : await readSecretLine('store.password_file', passwordFile)
  if (!address.tls) return { user: address.user, password, tls: undefined }
  const ca = tls.ca === undefined ? undefined : await readAuthorities('store.tls.ca', tls.ca)
  return { user: address.user, password, tls: { ca, insecure: tls.insecure } }
}
