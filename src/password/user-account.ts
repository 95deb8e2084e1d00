// The entry of one user in an htpasswd file or in a shadow file (shadow(5)).

/** There is no password: every login is refused, and the tokens of the former password are revoked (C8). */
export interface Absent {
  /** May be logged: it never quotes the file. */
  readonly absent: string
  /** The entry is missing or empty. A program may be about to write it, so `PasswordSource` waits before it believes this. */
  readonly isGone: boolean
}

interface Entry {
  /** The stored password. */
  readonly field: string
  /** When the account expires (wall clock, ms); undefined if it does not. */
  readonly until: number | undefined
}

/** May be logged: it never quotes the file. */
interface Unusable {
  readonly reason: string
}

const DAY = 86_400_000
const COLUMNS_OF_SHADOW = 9

/**
 * Reads the entry of a user from the text of a whole file. The first entry counts, as for Apache and login. A locked account (`!` or `*`
 * before the hash) and an expired one have no password. A text without the user and without a final end of line may be cut: unusable.
 *
 * @param wall the present time (ms since the Unix epoch)
 */
export function accountIn(
  text: string,
  user: string,
  isShadow: boolean,
  wall: number = Number.NEGATIVE_INFINITY,
): Entry | Absent | Unusable {
  const gone = `it has no user ${JSON.stringify(user)}`
  const line = text.split(/\r?\n/).find((each) => each.startsWith(`${user}:`))
  if (line === undefined) {
    const isWhole = text === '' || text.endsWith('\n')
    return isWhole ? { absent: gone, isGone: true } : { reason: `${gone}, and no end of line at its end` }
  }
  const columns = line.split(':')
  const [, field = ''] = columns
  if (/^[!*]/.test(field)) return { absent: 'the account is locked', isGone: false }
  if (field === '') return { absent: 'it is empty, and an empty password is never accepted', isGone: true }
  const ends = isShadow && columns.length === COLUMNS_OF_SHADOW ? endsOf(columns) : []
  const over = ends.find(({ day }) => wall >= day * DAY)
  if (over !== undefined) {
    const date = new Date(over.day * DAY).toISOString().slice(0, 10)
    return { absent: `${over.what} on ${date}`, isGone: false }
  }
  return { field, until: ends.length === 0 ? undefined : Math.min(...ends.map(({ day }) => day * DAY)) }
}

/**
 * The days (since the Unix epoch) from which PAM refuses every login, and why. A password that has to be changed is still accepted: Postern
 * cannot change it.
 */
function endsOf(columns: readonly string[]): { readonly day: number; readonly what: string }[] {
  const [, , changed, , max, , inactive, expiry] = columns.map((text) =>
    /^\d{1,7}$/.test(text) ? Number(text) : undefined,
  )
  const ends = []
  if (expiry !== undefined) ends.push({ day: expiry, what: 'the account expired' })
  // `changed` 0: the password has to be changed at the next login.
  if (changed !== undefined && changed > 0 && max !== undefined && inactive !== undefined)
    ends.push({ day: changed + max + inactive + 1, what: 'its password became too old' })
  return ends
}
