import { count, type Rule, raise, sumOf } from './alarm.ts'
import { KINDS } from './alarm-kinds.ts'

/** The most addresses that the sentence of the alarm names. */
const NAMED = 3

/** Alarms if many wrong passwords came within ten minutes. */
export const guessing: Rule = function* ({ facts: { wrongPasswords } }) {
  const { wrong, addresses, from } = wrongPasswords
  if (wrong <= KINDS.PosternPasswordGuessing.here.threshold) return
  const most = from.slice(0, NAMED).join(', ')
  const where = addresses === 1 ? most : `${count(addresses)} addresses (most from ${most})`
  yield raise('PosternPasswordGuessing', {
    what: `${count(wrong)} wrong passwords from ${where} within ten minutes`,
  })
}

/** Alarms if logins were refused because too many passwords wait, unless passwords are guessed: that has its own alarm. */
export const crowdedLogins: Rule = function* ({ facts, last }) {
  const { over, threshold } = KINDS.PosternOverloaded.here
  const refused = sumOf(last(over), ({ refusals }) => refusals.logins_overloaded ?? 0)
  if (refused <= threshold || facts.wrongPasswords.wrong > KINDS.PosternPasswordGuessing.here.threshold)
    return
  const were = refused === 1 ? 'login was' : 'logins were'
  yield raise('PosternOverloaded', {
    of: 'logins',
    what: `${count(refused)} ${were} refused as overloaded in the last minute`,
    meaning: 'more passwords come than this machine can verify; clients that have logged in before go first',
    remedy:
      'let clients keep their token for its hour, instead of a login for each request; a cheaper hash (postern hash-password) or a faster machine verifies more',
  })
}
