import { isDeepStrictEqual } from 'node:util'
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

export interface NamedSource extends PasswordLocation {
  /** Empty for the only password of a configuration without names. */
  readonly name: string
  /** The configuration key of its file. */
  readonly key: string
}

export interface PasswordsEvents extends Pick<PasswordSourceEvents, 'unreadable' | 'restored'> {
  /** This name has a different password from now on: revoke every token of its former one (C8). */
  changed(name: string): void
  /** This name is new. */
  added(name: string): void
  /** This name has no password any more: revoke every token of its former one (C8). `reason` names the file. */
  absent(name: string, reason: string): void
  /** These names have the same password, so it is refused as wrong. Called once for each generation. */
  ambiguous(names: readonly string[]): void
}

/** Passwords, each in a file that is watched. */
export type Passwords = Awaited<ReturnType<typeof openPasswords>>

/** What takes the place of a part. Exactly one of the two is called. */
export interface Replacement {
  /** Puts it in place, in one step. */
  swap(): void
  /** Closes what was opened for it. */
  discard(): void
}

/** A source, and where it reads. */
interface Opened {
  readonly location: PasswordLocation
  readonly source: PasswordSource
}

/** Opens all sources. Rejects with `SetupError` if one cannot be used. */
export async function openPasswords(
  sources: readonly NamedSource[],
  {
    clock,
    events = {},
    memory,
    precedence,
  }: {
    readonly clock: Clock
    readonly events?: Partial<PasswordsEvents>
    /** Default: unlimited. */
    readonly memory?: HashMemory | undefined
    /** Default: all clients are equal. */
    readonly precedence?: Precedence | undefined
  },
) {
  const verifier = createVerifier(clock, memory, precedence)
  let generation = 0
  let opened: ReadonlyMap<string, Opened> = new Map()
  /**
   * The sources of names that a reload has removed, with their last passwords. They stay in the fingerprint: other sidecars of a fleet may
   * still have these names.
   */
  const removed = new Map<string, PasswordSource>()
  /** The generation in which `ambiguous` was called last; -1: never. */
  let reported = -1

  async function open(
    { name, key, ...location }: NamedSource,
    isOneOfSeveral: boolean,
    limit: number | undefined,
  ): Promise<Opened> {
    let entry: Opened | undefined
    const isPresent = (): boolean => entry !== undefined && opened.get(name) === entry
    const ofName = {
      ...events,
      changed(): void {
        if (!isPresent()) return
        generation += 1
        events.changed?.(name)
      },
      absent(reason: string): void {
        if (!isPresent()) return
        generation += 1
        events.absent?.(name, reason)
      },
    }
    const obstacle: typeof verifier.obstacle = (credential) =>
      verifier.obstacle(credential, isPresent() ? undefined : limit)
    const deps = { clock, events: ofName, key, obstacle, isOneOfSeveral }
    entry = { location, source: await openPasswordSource(location, deps) }
    return entry
  }

  /** Opens the sources that are not open yet. Rejects with `SetupError`, and opens none, if one cannot be used. */
  async function openAll(all: readonly NamedSource[], limit?: number) {
    const next = new Map<string, Opened>()
    using added = new DisposableStack()
    for (const each of all) {
      const { name, key: _, ...location } = each
      const known = opened.get(name)
      const isSame = known !== undefined && isDeepStrictEqual(known.location, location)
      const entry = isSame ? known : await open(each, all.length > 1, limit)
      if (!isSame) added.defer(() => entry.source.close())
      next.set(name, entry)
    }
    const kept = added.move()
    return { next, discard: () => kept.dispose() }
  }

  /** Another file of a name is told as a change of the file is. An equal line in it is no change. */
  function swap(next: ReadonlyMap<string, Opened>): void {
    const before = opened
    opened = next
    for (const [name, entry] of before) {
      if (next.get(name) === entry) continue
      entry.source.close()
      if (next.has(name)) continue
      removed.set(name, entry.source)
      generation += 1
    }
    for (const [name, { source }] of next) {
      const earlier = before.get(name)?.source ?? removed.get(name)
      removed.delete(name)
      const { current } = source
      if (earlier !== undefined && earlier.current?.line === current?.line) continue
      generation += 1
      if (current === undefined) events.absent?.(name, source.state().absent ?? '')
      else if (earlier === undefined) events.added?.(name)
      else events.changed?.(name)
    }
  }

  const close = (): void => {
    for (const { source } of opened.values()) source.close()
    verifier.close()
  }
  try {
    opened = (await openAll(sources)).next
  } catch (error) {
    verifier.close()
    throw error
  }

  /** The names whose password this is. All passwords are compared, so the time does not reveal which one matches. */
  async function namesOf(
    password: string,
    client: string,
    onEnd?: OnEnd,
  ): Promise<readonly string[] | 'overloaded'> {
    const present = [...opened].flatMap(([name, { source }]) =>
      source.current === undefined ? [] : { name, credential: source.current.credential },
    )
    const credentials = present.map(({ credential }) => credential)
    const found = await verifier.verify(credentials, password, client, onEnd)
    if (found === 'overloaded') return found
    return present.filter((_, at) => found.includes(at)).map(({ name }) => name)
  }

  return {
    /** Whether there is a source at all. */
    get isSet(): boolean {
      return opened.size > 0
    },
    /**
     * Compares a password with the valid passwords of all names. If one of them changes meanwhile, the result is about an earlier
     * `generation`: verify again. A password that two names have is `wrong`. Logins that share a comparison each get a result for their own
     * username. `client` and `onEnd`: as in `Verifier`.
     *
     * @param username the username that came with the password. If it is one of the names (case-sensitive), the password has to be that of
     * the name; any other username is ignored. All passwords are compared in either case
     */
    async verify(password: string, client: string, username?: string, onEnd?: OnEnd): Promise<Verified> {
      const before = generation
      const found = await namesOf(password, client, onEnd)
      if (found === 'overloaded') return { result: found, generation: before }
      const [name] = found
      if (name !== undefined && found.length === 1) {
        const isOther = username !== undefined && username !== name && opened.has(username)
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
    /** The number of changes of all passwords so far, also of removed names. It grows before `changed` is called. */
    get generation(): number {
      return generation
    },
    /** Whether a change of a password ends tokens: its file is watched. */
    follows: true,
    /** Whether this name has a password. It has none if it is unknown, or its account is locked, has expired or is gone. */
    has: (name: string): boolean => opened.get(name)?.source.current !== undefined,
    /** The fingerprints of all names as one text: see `textOfNames`. */
    async fingerprint(salt: Uint8Array): Promise<string> {
      const all = new Map([...removed, ...[...opened].map(([name, { source }]) => [name, source] as const)])
      const prints = await Promise.all(
        [...all].map(async ([name, each]) => [name, await each.fingerprint(salt)] as const),
      )
      return textOfNames(new Map(prints))
    },
    /** Names with the same password, as far as the files show it: two hashes of one password look different. */
    async twins(): Promise<readonly string[]> {
      const all = [...opened].map(([name, { source }]) => ({ name, current: source.current }))
      for (const { current } of all) {
        if (current === undefined) continue
        const found =
          current.credential.kind === 'plain'
            ? await namesOf(current.line, '')
            : all.filter((each) => each.current?.line === current.line).map(({ name }) => name)
        if (found !== 'overloaded' && found.length > 1) return found
      }
      return []
    },
    state: (): PasswordSourceState =>
      stateOf(new Map([...opened].map(([name, { source }]) => [name, source.state()]))),
    /**
     * Opens these sources in place of the present ones. Rejects with `SetupError`, and changes nothing, if one cannot be used.
     *
     * @param limit the memory for hashes from the swap on (bytes)
     */
    async replace(all: readonly NamedSource[], limit: number): Promise<Replacement> {
      const { next, discard } = await openAll(all, limit)
      return { swap: () => swap(next), discard }
    },
    [Symbol.dispose]: close,
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
