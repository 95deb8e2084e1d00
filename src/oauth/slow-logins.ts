import { Listed, WindowList } from '../limits/window-table.ts'
import type { Clock, Timer } from '../system/clock.ts'
import type { LogIn, LogInResult, LoginRequest } from '../tokens/issuing.ts'
import type { FormSettings } from './form-request.ts'
import type { LoginHistory } from './login-history.ts'

/** After this time (ms) without an attempt, the wrong passwords of a client are forgotten. */
const MEMORY = 600_000
/** The first and the longest wait before an attempt (ms). */
const FIRST_WAIT = 250
const LONGEST_WAIT = 30_000

/** `free` wrong passwords cause no wait. The wait doubles with each further `step` wrong ones. */
const OF_CLIENT = { free: 4, step: 1 }
/**
 * The same for all clients together. An attacker with many addresses passes the bound of each client. But clients that only mistype share
 * this wait, so it rises slowly.
 */
const OF_ALL = { free: 50, step: 25 }
/** In each such time (ms), one wrong password of all clients is forgotten: a script with an old password must not slow down everyone. */
const FORGOTTEN = 12_000
/**
 * At most this many wrong passwords of a client count among those of all, until the client is forgotten: one client alone slows no other.
 */
const SHARE = 10

/** The most attempts that wait at once, of all clients and of one. Each holds its connection and its form, a few kilobytes. */
const MOST_WAITING = 1_000
const MOST_OF_CLIENT = 64

/** An attempt that waits for its turn. */
interface Attempt {
  /** The attempt is refused if its turn comes later (ms on the monotonic clock). */
  readonly until: number
  /** The key of its client. */
  readonly client: string
  /** The attempt was counted as one that waits because of wrong passwords. */
  slowed: boolean
  readonly settle: (turn: Turn) => void
}

/** `begins`: the attempt is verified now. The others are results of a login that was not verified. */
type Turn = 'begins' | Extract<LogInResult, 'overloaded' | { slowedFor: number }>

/** The attempts of one client. Times on the monotonic clock (ms). */
class Guesses extends Listed {
  /** When these guesses are forgotten. */
  closesAt = 0
  /** How many attempts were wrong. */
  wrong = 0
  /** How many of them count among the wrong ones of all clients. */
  shared = 0
  /** How many attempts are being verified. */
  running = 0
  /** When the next attempt begins. If the attempt that waited for this time was refused or has left, the next one may use the time. */
  nextAt: number | undefined
  timer: Timer | undefined
  readonly waiting: Attempt[] = []
}

const waitAfter = (wrong: number, { free, step }: typeof OF_CLIENT): number =>
  wrong < free ? 0 : Math.min(LONGEST_WAIT, FIRST_WAIT * 2 ** Math.floor((wrong - free) / step))

interface SlowLoginDependencies {
  readonly clock: Clock
  /** A reload replaces what it holds. */
  readonly settings: FormSettings & {
    readonly config: {
      readonly limits: { readonly wrongPasswords: 'off' | 'slow'; readonly maxKeys: number }
    }
  }
  readonly history: Pick<LoginHistory, 'isKnown' | 'isUnlimited'>
  /** Called when an attempt has to wait. */
  readonly onSlowed: () => void
}

/**
 * Makes guessing slower with `limits.wrong_passwords: slow`. After four wrong passwords of a client, its attempts are verified one after
 * the other, and each waits before that. The wait doubles with each wrong password of its client, and more slowly with those of all
 * clients. An attempt that would have to wait for longer than a body may pause is refused. `Retry-After` says when the client may try
 * again, so a right password is never locked out.
 *
 * - A wait follows from verdicts. Before four wrong ones, as many attempts are verified at once as may be wrong without a wait, and the
 *   others wait for their verdicts. So right passwords pass as fast as they hash (two at a time), and a client gains nothing by many wrong
 *   ones at once.
 * - A right password ends the wait of its client, also for the attempts behind it. A known client does not wait because of wrong passwords
 *   of others. Both hold only for names without `allow`: a password that may do little must not help to guess another one.
 * - A waiting attempt holds no place for hashing. If its client leaves, its turn passes on. The number of waiting attempts is bounded. An
 *   attempt of an unknown client makes room for one of a known client.
 * - Clients are kept as windows are (C17): at most `limits.max_keys`, and all further clients that are not known count together.
 */
export function slowLogins(
  logIn: LogIn,
  { clock, settings, history, onSlowed }: SlowLoginDependencies,
): LogIn {
  const clients = new WindowList(() => new Guesses())
  const all = { wrong: 0, at: 0 }
  /** The attempts that wait, of all clients, in the order of their arrival. */
  const waiting = new Map<Attempt, Guesses>()

  function guessesOf(key: string): Guesses {
    const now = clock.monotonic()
    // A known client always has guesses of its own: the login history bounds how many clients are known.
    const most = history.isKnown(key) ? Number.POSITIVE_INFINITY : settings.config.limits.maxKeys
    // Without `renew`, these guesses would close at 0.
    const guesses = clients.find(key, now, most) ?? clients.open(key, now)
    clients.renew(guesses, now + MEMORY)
    return guesses
  }

  /** Forgets wrong passwords of all clients, as many as the time since the last call allows. */
  function forgetSome(): void {
    const now = clock.monotonic()
    all.wrong = Math.max(0, all.wrong - (now - all.at) / FORGOTTEN)
    all.at = now
  }

  /** How long (ms) an attempt waits because of the wrong passwords of all clients. */
  function waitForAll(): number {
    forgetSome()
    return waitAfter(all.wrong, OF_ALL)
  }

  /** Begins or refuses the attempts of a client whose turn has come, in the order of their arrival. */
  function advance(guesses: Guesses): void {
    guesses.timer?.cancel()
    for (let [next] = guesses.waiting; next !== undefined; [next] = guesses.waiting) {
      const ofAll = history.isKnown(next.client) ? 0 : waitForAll()
      const pace = Math.max(waitAfter(guesses.wrong, OF_CLIENT), ofAll)
      const most = pace === 0 ? OF_CLIENT.free - guesses.wrong : 1
      if (guesses.running >= most) return
      const now = clock.monotonic()
      const at = pace === 0 ? now : (guesses.nextAt ?? now + pace)
      if (at <= now) {
        guesses.running += 1
        guesses.nextAt = undefined
        leave(guesses, next, 'begins')
        continue
      }
      guesses.nextAt = at
      if (at <= next.until) {
        if (!next.slowed) onSlowed()
        next.slowed = true
        guesses.timer = clock.after(at - now, () => advance(guesses))
        return
      }
      leave(guesses, next, { slowedFor: at - now })
    }
  }

  /** False if the attempt no longer waits. */
  function leave({ waiting: attempts }: Guesses, attempt: Attempt, turn: Turn): boolean {
    const at = attempts.indexOf(attempt)
    if (at < 0) return false
    attempts.splice(at, 1)
    waiting.delete(attempt)
    attempt.settle(turn)
    return true
  }

  /** Waits until an attempt may be verified. */
  function turnOf(guesses: Guesses, request: LoginRequest): Promise<Turn> {
    const until = clock.monotonic() + settings.bodyTimeout
    return new Promise((settle) => {
      const attempt: Attempt = { until, client: request.client.key, slowed: false, settle }
      guesses.waiting.push(attempt)
      waiting.set(attempt, guesses)
      advance(guesses)
      if (guesses.waiting.length > MOST_OF_CLIENT) leave(guesses, attempt, 'overloaded')
      else if (waiting.size > MOST_WAITING) makeRoom()
      // An attempt whose client leaves gives its turn to the next one.
      request.onEnd(() => {
        if (leave(guesses, attempt, 'overloaded')) advance(guesses)
      })
    })
  }

  /** Refuses the latest attempt of an unknown client, or the latest of all if every client is known. */
  function makeRoom(): void {
    const latestFirst = [...waiting].reverse()
    const [attempt, guesses] =
      latestFirst.find(([{ client }]) => !history.isKnown(client)) ?? latestFirst[0] ?? []
    if (attempt !== undefined && guesses !== undefined) leave(guesses, attempt, 'overloaded')
  }

  function judge(guesses: Guesses, result: LogInResult): void {
    if (result === 'wrong' || result === 'other-name') {
      guesses.wrong += 1
      forgetSome()
      if (guesses.shared < SHARE) {
        guesses.shared += 1
        all.wrong += 1
      }
    } else if (typeof result === 'object' && 'accessToken' in result && history.isUnlimited(result.grant)) {
      guesses.wrong = 0
      guesses.nextAt = undefined
    }
    clients.renew(guesses, clock.monotonic() + MEMORY)
  }

  return async (password, request, grantType, username) => {
    if (settings.config.limits.wrongPasswords === 'off') return logIn(password, request, grantType, username)
    const guesses = guessesOf(request.client.key)
    const turn = request.answered ? 'overloaded' : await turnOf(guesses, request)
    if (turn !== 'begins') return turn
    try {
      const result = await logIn(password, request, grantType, username)
      judge(guesses, result)
      return result
    } finally {
      guesses.running -= 1
      advance(guesses)
    }
  }
}
