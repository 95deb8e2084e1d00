import { LRUCache } from 'lru-cache'
import { createFairQueue } from '../system/bounded-queue.ts'
import type { Clock } from '../system/clock.ts'
import type { Handout } from '../tokens/handout.ts'
import type { Digest } from '../tokens/mint.ts'
import type { Epoch } from './epoch.ts'
import { LOOK_UP, runScript } from './scripts.ts'
import { listOf, type SharedStore, StoreUnavailable } from './shared-store.ts'

/** An access token as the server knows it. */
export interface FoundToken {
  readonly grant: string
  readonly client: string
  /** How long ago the password was given, by the server's clock (ms). */
  readonly age: number
  readonly epoch: string
  /** The names whose tokens of earlier epochs hold: see `DeviceState.since`. */
  readonly since: string
  /** When it expires, on the monotonic clock (ms). */
  readonly until: number
  /** Only of an issued grant. */
  readonly handout?: Pick<Handout, 'label' | 'lifetime'> | undefined
}

/** `unavailable`: the server did not answer, or it has lost data and so perhaps the token. */
type TokenAnswer = FoundToken | 'unknown' | 'unavailable'

/** The most tokens in one look-up, and the most that wait for later look-ups. */
const MOST_ASKED = 64
const MOST_WAITING = 2048

/**
 * How long an unknown token is remembered (ms), which limits repeated questions. A stale entry is harmless: no client presents a token
 * before it is issued.
 */
const UNKNOWN_FOR = 10_000

/** The most unknown tokens that are remembered. */
const MOST_UNKNOWN = 10_000

interface Question {
  readonly digest: Digest
  readonly since: number
  readonly answer: PromiseWithResolvers<TokenAnswer>
}

/**
 * Asks the server of a shared store about access tokens: once about each, and about a bounded number at a time (H128). One look-up is in
 * flight at a time. The next one asks for the tokens that came meanwhile; clients take turns. While fewer than 64 clients wait, a client
 * that invents tokens delays other clients by one look-up at most. Valid tokens from the address of that client wait behind its questions.
 *
 * @param timeout the longest wait for a question's turn (ms)
 */
export function createTokenQuestions(
  store: SharedStore,
  clock: Clock,
  epoch: Pick<Epoch, 'isBehind'>,
  timeout: number,
) {
  const waiting = createFairQueue<Question>()
  const pending = new Map<Digest, Promise<TokenAnswer>>()
  let isAsking = false
  /** The tokens that the server did not know. `maxSize`, because with `max` the cache would allocate memory for all entries at once. */
  const unknown = new LRUCache<Digest, true>({
    maxSize: MOST_UNKNOWN,
    sizeCalculation: () => 1,
    ttl: UNKNOWN_FOR,
    ttlResolution: 0,
    perf: { now: clock.monotonic },
  })

  function enqueue(digest: Digest, client: string): Promise<TokenAnswer> {
    if (waiting.size >= MOST_WAITING) {
      const displaced = waiting.makeRoomFor(client)
      if (displaced === undefined) return Promise.resolve('unavailable')
      displaced.answer.resolve('unavailable')
    }
    const answer = Promise.withResolvers<TokenAnswer>()
    waiting.join(client, { digest, since: clock.monotonic(), answer })
    if (!isAsking) void askInTurn()
    return answer.promise
  }

  async function askInTurn(): Promise<void> {
    isAsking = true
    for (let asked = nextQuestions(); asked.length > 0; asked = nextQuestions()) await askFor(asked)
    isAsking = false
  }

  function nextQuestions(): readonly Question[] {
    const next: Question[] = []
    while (next.length < MOST_ASKED) {
      const question = waiting.next()
      if (question === undefined) break
      if (clock.monotonic() - question.since <= timeout) next.push(question)
      else question.answer.resolve('unavailable')
    }
    return next
  }

  /** Settles all questions, even if the server does not answer. */
  async function askFor(questions: readonly Question[]): Promise<void> {
    const asked = clock.monotonic()
    const digests = questions.map(({ digest }) => digest)
    try {
      const [present, since, ...found] = await runScript(store, LOOK_UP, ...digests)
      questions.forEach(({ digest, answer }, at) => {
        const [grant, client, age, left, lifetime, label] = listOf(found[at])
        if (grant === undefined) answer.resolve(unknownBy(String(present), digest))
        else {
          const facts = { grant: String(grant), client: String(client), age: Number(age) }
          const until = asked + Number(left)
          const handout =
            label === undefined ? undefined : { label: String(label), lifetime: Number(lifetime) }
          answer.resolve({ ...facts, epoch: String(present), since: String(since), until, handout })
        }
      })
    } catch (error) {
      for (const { answer } of questions)
        if (error instanceof StoreUnavailable) answer.resolve('unavailable')
        else answer.reject(error)
    }
  }

  function unknownBy(present: string, digest: Digest): TokenAnswer {
    if (epoch.isBehind(present)) return 'unavailable'
    unknown.set(digest, true)
    return 'unknown'
  }

  return {
    /** Whether the server said a short time ago that there is no such token. */
    isUnknown: (digest: Digest): boolean => unknown.has(digest),
    forget: (): void => unknown.clear(),
    /** Asks the server. Requests with the same token share one question. `client`: the key by which clients take turns. */
    ask(digest: Digest, client: string): Promise<TokenAnswer> {
      return pending.getOrInsertComputed(digest, () =>
        enqueue(digest, client).finally(() => pending.delete(digest)),
      )
    },
  }
}
