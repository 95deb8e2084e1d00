import { textOfNames } from '../http/scope.ts'
import type { Clock } from '../system/clock.ts'
import type { OnEnd } from './login-queue.ts'
import type { PasswordLocation } from './read-source.ts'
import {
  openPasswordSource,
  type PasswordSource,
  type PasswordSourceEvents,
  type PasswordSourceState,
} from './source.ts'
import { createVerifier, type HashMemory, type Verified } from './verifier.ts'
import type { Precedence } from './weighted-turns.ts'

interface NamedSource extends PasswordLocation {
  /** Empty for the only password of a configuration without names. */
  readonly name: string
  /** The configuration key of its file. */
  readonly key: string
}

export interface PasswordsEvents extends Pick<PasswordSourceEvents, 'unreadable' | 'restored'> {
  /** This name has a different password from now on: revoke every token of its former one (C8). */
  changed(name: string): void
  /** This name has no password any more: revoke every token of its former one (C8). `reason` names the file. */
  absent(name: string, reason: string): void
  /** These names have the same password, so it is refused as wrong. Called once until a password changes. */
  ambiguous(names: readonly string[]): void
}

/** Passwords, each in a file that is watched. */
export type Passwords = Awaited<ReturnType<typeof openPasswords>>

/** Opens all sources. Rejects with `SetupError` if one cannot be used. */
export async function openPasswords(
  sources: readonly NamedSource[],
  {
    clock,
    events = {},
    hasName = () => true,
    memory,
    precedence,
  }: {
    readonly clock: Clock
    readonly events?: Partial<PasswordsEvents>
    /** Whether the configuration still has the name, after a reload too. */
    readonly hasName?: (name: string) => boolean
    /** Default: unlimited. */
    readonly memory?: HashMemory | undefined
    /** Default: all clients are equal. */
    readonly precedence?: Precedence | undefined
  },
) {
  const verifier = createVerifier(clock, memory, precedence)
  let generation = 0
  const opened = new Map<string, PasswordSource>()
  const { obstacle } = verifier
  const close = (): void => {
    for (const each of opened.values()) each.close()
    verifier.close()
  }
  try {
    for (const { name, key, ...location } of sources) {
      const changed = (): void => {
        generation += 1
        events.changed?.(name)
      }
      const absent = (reason: string): void => {
        generation += 1
        events.absent?.(name, reason)
      }
      const ofName = { ...events, changed, absent }
      const isOneOfSeveral = sources.length > 1
      const deps = { clock, events: ofName, key, obstacle, isOneOfSeveral }
      opened.set(name, await openPasswordSource(location, deps))
    }
  } catch (error) {
    close()
    throw error
  }
  const names = [...opened.keys()]
  const all = [...opened.values()]

  /** The names whose password this is. All passwords are compared, so the time does not reveal which one matches. */
  async function namesOf(
    password: string,
    client: string,
    onEnd?: OnEnd,
  ): Promise<readonly string[] | 'overloaded'> {
    const present = [...opened].flatMap(([name, { current }]) =>
      current === undefined ? [] : { name, credential: current.credential },
    )
    const credentials = present.map(({ credential }) => credential)
    const found = await verifier.verify(credentials, password, client, onEnd)
    if (found === 'overloaded') return found
    return present.filter(({ name }, at) => found.includes(at) && hasName(name)).map(({ name }) => name)
  }

  /** Whether a username is one of the names. Case-sensitive, as in the configuration. */
  const isName = (username: string): boolean => opened.has(username) && hasName(username)

  /** The generation in which `ambiguous` was called last. */
  let reported = -1

  return {
    /**
     * Compares a password with the valid passwords of all names. If one of them changes meanwhile, the result is about an earlier
     * `generation`: verify again. A password that two names have is `wrong`. Logins that share a comparison each get a result for their own
     * username. `client` and `onEnd`: as in `Verifier`.
     *
     * @param username the username that came with the password. If it is one of the names, the password has to be that of the name; any
     * other username is ignored. All passwords are compared in either case
     */
    async verify(password: string, client: string, username?: string, onEnd?: OnEnd): Promise<Verified> {
      const before = generation
      const found = await namesOf(password, client, onEnd)
      if (found === 'overloaded') return { result: found, generation: before }
      const [name] = found
      if (name !== undefined && found.length === 1) {
        const isOther = username !== undefined && username !== name && isName(username)
        return isOther
          ? { result: 'other-name', generation: before }
          : { result: 'right', generation: before, name }
      }
      if (name !== undefined && reported !== generation) {
        reported = generation
        events.ambiguous?.(found)
      }
      return { result: 'wrong', generation: before }
    },
    /** The number of changes of all passwords so far. It grows before `changed` is called. */
    get generation(): number {
      return generation
    },
    /** Whether this name has a password. It has none if it is unknown, or its account is locked, has expired or is gone. */
    has: (name: string): boolean => opened.get(name)?.current !== undefined,
    /** The fingerprints of all names as one text: see `textOfNames`. */
    async fingerprint(salt: Uint8Array): Promise<string> {
      const prints = await Promise.all(
        [...opened].map(async ([name, each]) => [name, await each.fingerprint(salt)] as const),
      )
      return textOfNames(new Map(prints))
    },
    /** Names with the same password, as far as the files show it: two hashes of one password look different. */
    async twins(): Promise<readonly string[]> {
      for (const { current } of all) {
        if (current === undefined) continue
        const found =
          current.credential.kind === 'plain'
            ? await namesOf(current.line, '')
            : names.filter((_, at) => all[at]?.current?.line === current.line)
        if (found !== 'overloaded' && found.length > 1) return found
      }
      return []
    },
    state: (): PasswordSourceState =>
      stateOf(new Map([...opened].map(([name, each]) => [name, each.state()]))),
    close,
  }
}

/** The state of all sources together: the first problem, all names without a password, and the latest change. */
function stateOf(states: ReadonlyMap<string, PasswordSourceState>): PasswordSourceState {
  const all = [...states.values()]
  const changes = all.flatMap(({ changedAt }) => changedAt ?? [])
  const changedAt = changes.length === 0 ? undefined : Math.max(...changes)
  const unread = all.find(({ readable }) => !readable)
  const absent = [...states].flatMap(([name, state]) =>
    state.absent === undefined ? [] : `${name === '' ? '' : `${name}: `}${state.absent}`,
  )
  return {
    readable: unread === undefined,
    reason: unread?.reason,
    absent: absent.length === 0 ? undefined : absent.join('; '),
    changedAt,
  }
}
