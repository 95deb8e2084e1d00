import { listOf, type SharedStore, StoreUnavailable } from '../store/shared-store.ts'
import { createBoundedQueue } from '../system/bounded-queue.ts'
import type { Clock } from '../system/clock.ts'
import type { Digest } from './mint.ts'
import { LOOK_UP } from './token-scripts.ts'

/** An access token as the server knows it. */
export interface FoundToken {
  readonly kind: 'found'
  readonly grant: string
  readonly client: string
  /** When the password was given, on the server's clock (ms). */
  readonly granted: number
  readonly epoch: string
  /** Whether the epoch is the first one of an emptied server. */
  readonly isFounded: boolean
  /** When it expires, on the monotonic clock (ms). */
  readonly until: number
}

/** `unavailable`: the server did not answer, or it has lost data and with it perhaps the token. */
type TokenAnswer = FoundToken | { readonly kind: 'unknown' } | { readonly kind: 'unavailable' }

export interface TokenQuestions {
  /** What the server said about the token a short time ago; undefined if it has to be asked. */
  remembered(digest: Digest): TokenAnswer | undefined
  /** Another server may answer from now on: it may know what the one before it did not. */
  forget(): void
  /** Asks the server. Requests with the same token share one question. */
  ask(digest: Digest): Promise<TokenAnswer>
}

export interface TokenQuestionsDependencies {
  readonly store: SharedStore
  readonly clock: Clock
  /** The epoch that this sidecar knows. */
  readonly epoch: () => string
  /** The longest wait for a question's turn (ms). */
  readonly timeout: number
}

/** How many questions run at a time, and how many wait. Invented tokens must not flood the server. */
const QUESTIONS = { inside: 64, waiting: 1024 }

/**
 * How long an unknown token is remembered (ms). A token is never presented before it is issued, so a stale entry is harmless. The time
 * only limits repeated questions.
 */
const UNKNOWN_FOR = 10_000

/** How many unknown tokens are remembered. */
const MOST_UNKNOWN = 10_000

const UNKNOWN: TokenAnswer = { kind: 'unknown' }
const UNAVAILABLE: TokenAnswer = { kind: 'unavailable' }

/** Asks the server of a shared store about access tokens: about each once, and about a bounded number at a time (H128). */
export function createTokenQuestions({
  store,
  clock,
  epoch,
  timeout,
}: TokenQuestionsDependencies): TokenQuestions {
  const queue = createBoundedQueue({ ...QUESTIONS, maxWait: timeout })
  const running = new Map<Digest, Promise<TokenAnswer>>()
  /** Until when a token is taken for unknown, the oldest first. */
  const unknown = new Map<Digest, number>()

  async function askInTurn(digest: Digest): Promise<TokenAnswer> {
    const entry = await queue.enter()
    if (entry.kind !== 'entered') return UNAVAILABLE
    const asked = clock.monotonic()
    try {
      const reply = await store.run(LOOK_UP, [`${store.prefix}state`], [store.prefix, digest])
      return answerIn(listOf(reply).map(String), digest, asked)
    } catch (error) {
      if (error instanceof StoreUnavailable) return UNAVAILABLE
      throw error
    } finally {
      entry.leave()
    }
  }

  function answerIn(reply: readonly string[], digest: Digest, asked: number): TokenAnswer {
    const [present = '', grant, client, granted, left, founded] = reply
    if (grant === undefined || client === undefined) {
      if (present === '' || Number(present) < Number(epoch())) return UNAVAILABLE
      const [oldest] = unknown.keys()
      if (unknown.size >= MOST_UNKNOWN && oldest !== undefined) unknown.delete(oldest)
      unknown.set(digest, clock.monotonic() + UNKNOWN_FOR)
      return UNKNOWN
    }
    const until = asked + Number(left)
    const isFounded = founded === present
    return { kind: 'found', grant, client, granted: Number(granted), epoch: present, isFounded, until }
  }

  return {
    remembered: (digest) => (clock.monotonic() < (unknown.get(digest) ?? 0) ? UNKNOWN : undefined),
    forget: () => unknown.clear(),
    ask(digest) {
      const question = running.get(digest) ?? askInTurn(digest).finally(() => running.delete(digest))
      running.set(digest, question)
      return question
    },
  }
}
