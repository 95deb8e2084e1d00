import { setTimeout as delay } from 'node:timers/promises'
import type { Clock } from '../system/clock.ts'
import { watchFile } from '../system/file-watch.ts'
import { SetupError } from '../system/setup-error.ts'
import { fingerprintOf } from './key-derivation.ts'
import { type PasswordSourceConfig, type Reading, readSource, sourcePath } from './source-file.ts'
import { createVerifier, type Verdict } from './verifier.ts'

/** What the rest of the house is told about the password while it runs. */
export interface PasswordSourceEvents {
  /** Another password holds from now on: every token given for the earlier one must go (C8). */
  changed(): void
  /** The source can't be used; the last good password holds. Once per distinct trouble, with file and reason. */
  unreadable(reason: string): void
  /** The source can be used again. If its password is another one, `changed` follows. */
  restored(): void
}

interface PasswordSourceState {
  readonly readable: boolean
  readonly reason?: string
}

/** The device password as it stands in its file, watched. */
export interface PasswordSource {
  /** Against the password that holds when the answer is given, not when the question was asked. */
  verify(password: string): Promise<Verdict>
  /** Of what the file holds, as `fingerprintOf` gives it. */
  fingerprint(salt: Uint8Array): Promise<string>
  state(): PasswordSourceState
  close(): void
}

/** Milliseconds between the two reads that must agree: what a writer has not finished is not taken. */
const SETTLE = 75

/** Fails with `SetupError` if the source can't be used now; later troubles are events. */
export async function openPasswordSource(
  config: PasswordSourceConfig,
  { clock, events }: { readonly clock: Clock; readonly events: PasswordSourceEvents },
): Promise<PasswordSource> {
  const file = sourcePath(config)
  const named = (reason: string): string => `password file ${file}: ${reason}`
  const verifier = createVerifier()

  const look = async (): Promise<Reading> => {
    const reading = await readSource(config)
    if (reading.kind === 'trouble') return reading
    const reason = verifier.obstacle(reading.credential)
    return reason === undefined ? reading : { kind: 'trouble', reason }
  }

  const first = await look()
  if (first.kind === 'trouble') throw new SetupError(named(first.reason))

  let current = first
  let trouble: string | undefined
  let closed = false

  const isNews = (reading: Reading): boolean =>
    reading.kind === 'trouble'
      ? reading.reason !== trouble
      : trouble !== undefined || reading.line !== current.line

  const take = (reading: Reading): void => {
    if (reading.kind === 'trouble') {
      trouble = reading.reason
      events.unreadable(named(reading.reason))
      return
    }
    const wasTroubled = trouble !== undefined
    const isAnother = reading.line !== current.line
    trouble = undefined
    // Before anyone is told: nobody may be let in with the earlier password once the tokens are revoked.
    if (isAnother) current = reading
    if (wasTroubled) events.restored()
    if (isAnother) events.changed()
  }

  const reread = async (): Promise<void> => {
    let reading = await look()
    while (!closed && isNews(reading)) {
      await delay(SETTLE, undefined, { ref: false })
      const again = await look()
      if (closed) return
      if (alike(reading, again)) return take(again)
      reading = again
    }
  }

  const watch = watchFile(file, clock, reread)

  return {
    async verify(password) {
      for (;;) {
        const asked = current
        const verdict = await verifier.verify(asked.credential, password)
        // Changed meanwhile: the verdict is about a password that no longer holds.
        if (asked === current || verdict === 'overloaded') return verdict
      }
    },
    fingerprint: (salt) => fingerprintOf(current.line, salt),
    state: () => (trouble === undefined ? { readable: true } : { readable: false, reason: named(trouble) }),
    close() {
      closed = true
      watch.close()
      verifier.close()
    },
  }
}

function alike(one: Reading, other: Reading): boolean {
  if (one.kind === 'line') return other.kind === 'line' && one.line === other.line
  return other.kind === 'trouble' && one.reason === other.reason
}
