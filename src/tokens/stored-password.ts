import { randomBytes } from 'node:crypto'
import { nameOfGrant } from '../http/scope.ts'
import type { Now } from './backend.ts'
import type { Agreement } from './issuing.ts'
import type { TokenJournal } from './journal.ts'
import { grantsInFlight, type LiveRequests, PASSWORD_CHANGED } from './state.ts'
import { comparePasswords, FINGERPRINT, SALT } from './token-journal.ts'
import type { TokenStore } from './token-store.ts'

/** The fingerprints of the passwords: see `textOfNames`. Undefined while none is known. */
type Fingerprint = (salt: Uint8Array) => Promise<string | undefined>

interface Dependencies {
  readonly journal: Pick<TokenJournal, 'getMeta' | 'setMeta'> | undefined
  readonly tokens: Pick<Now<TokenStore>, 'grants' | 'revoke'>
  /** Resolves when every token that was revoked has left the journal. */
  readonly removed: () => Promise<void>
  readonly live: Pick<LiveRequests, 'granted'>
  /** The name for grants without a name; empty: they stay without one. */
  readonly heir: string
  readonly generation: () => number
  readonly fingerprint: Fingerprint
}

/**
 * Binds the tokens of this process to its passwords (C8). The journal holds the fingerprints of the passwords for which it holds tokens. No
 * token is issued before it has those of the present ones: a restart would take the token for one of an earlier password and revoke it.
 */
export function createStoredPassword(deps: Dependencies) {
  const { journal, tokens, removed, live, heir, generation, fingerprint } = deps
  const salt = journal?.getMeta(SALT) ?? randomBytes(16).toString('base64url')
  /** Resolves when the journal has the fingerprint of the present password; undefined if the journal may lack it. */
  let settling: Promise<void> | undefined

  /** @param name of a password that has changed; empty for `password` */
  function revokeOf(name: string): void {
    tokens.revoke(name === '' ? { all: true } : { name }, PASSWORD_CHANGED)
  }

  /** Revokes the tokens of each name whose password is gone or differs from the one in the journal. Then saves the present fingerprints. */
  async function settleNow(printed: Fingerprint): Promise<void> {
    if (journal === undefined) return
    // The tokens of the former password leave the journal before the new fingerprint enters it: a restart in between would accept the rest.
    await removed()
    const before = generation()
    const text = await printed(Buffer.from(salt, 'base64url'))
    if (before !== generation()) return settleNow(printed)
    // With `password.device`, the password is unknown until the first login.
    if (text === undefined) return
    const stored = journal.getMeta(FINGERPRINT)
    if (text === stored) return
    const isSame = comparePasswords(text, stored ?? '', heir)
    const grants = [...tokens.grants().map(({ id }) => id), ...grantsInFlight(live)]
    for (const name of new Set(grants.map(nameOfGrant))) if (!isSame(name)) revokeOf(name)
    await removed()
    if (before !== generation()) return settleNow(printed)
    journal.setMeta(SALT, salt)
    journal.setMeta(FINGERPRINT, text)
  }

  function settleBy(printed: Fingerprint): Promise<void> {
    settling = settleNow(printed)
    settling.catch(() => {
      settling = undefined
    })
    return settling
  }
  const settle = (): Promise<void> => settling ?? settleBy(fingerprint)

  return {
    settle,
    async present() {
      await settle()
      return { kind: 'agreed', generation: generation(), epoch: '' }
    },
    /** @param name of a password that has changed; empty for `password` */
    changed(name: string): void {
      revokeOf(name)
      settling = undefined
    },
    /** The first right password since the start is known, which the device has checked. */
    learned: settleBy,
  } satisfies Agreement & Record<string, unknown>
}
