import { connect } from '../support/client.ts'
import { BrokenTransfer } from '../support/message.ts'
import { LIMITS } from './house.ts'
import { asForm, isRefusal, judge } from './judge.ts'
import type { Visitor } from './visitor.ts'

export async function refresh(visitor: Visitor): Promise<void> {
  const { tokens } = visitor
  if (tokens === undefined) return
  const from = visitor.house.now()
  const form = asForm({ grant_type: 'refresh_token', refresh_token: tokens.refresh_token })
  const answer = await visitor.ask('refresh', { path: '/oauth/token', ...form })
  if (answer === undefined) return
  const revoked = visitor.outdated || visitor.house.weather.was('password', from, visitor.house.now())
  if (revoked && isRefusal(answer, 400, 'invalid_grant')) {
    visitor.house.ledger.count('refresh', 'revoked')
    visitor.logOut()
    return
  }
  const given = answer.status === 200 ? answer.json() : {}
  const right = given.refresh_token === tokens.refresh_token && given.access_token !== tokens.access_token
  judge(visitor, 'refresh', answer, right)
}

export async function wrongPassword(visitor: Visitor): Promise<void> {
  const form = asForm({ grant_type: 'password', password: 'certainly not' })
  const answer = await visitor.ask('wrong password', { path: '/oauth/token', ...form })
  if (answer !== undefined) judge(visitor, 'wrong password', answer, isRefusal(answer, 400, 'invalid_grant'))
}

export async function formerPassword(visitor: Visitor): Promise<void> {
  const { password, weather, now } = visitor.house
  const from = now()
  const { changes, before } = password
  if (changes === 0) return
  const form = asForm({ grant_type: 'password', password: before })
  const answer = await visitor.ask('former password', { path: '/oauth/token', ...form })
  if (answer === undefined || weather.was('password', from, now())) return
  judge(visitor, 'former password', answer, isRefusal(answer, 400, 'invalid_grant'))
}

export async function badForm(visitor: Visitor): Promise<void> {
  const body = visitor.random.pick([
    '',
    'grant_type',
    'grant_type=password&password=%zz',
    'a=b&a=b&grant_type=password',
  ])
  const answer = await visitor.ask('bad form', { path: '/oauth/token', ...asForm({}), body })
  if (answer !== undefined) judge(visitor, 'bad form', answer, isRefusal(answer, 400, 'invalid_request'))
}

export async function noToken(visitor: Visitor): Promise<void> {
  const token = visitor.random.pick([undefined, 'wrong', 'x'.repeat(43)])
  const answer = await visitor.ask('no token', { path: '/bytes/1/10', token })
  if (answer !== undefined) judge(visitor, 'no token', answer, isRefusal(answer, 401, 'invalid_token'))
}

export async function logOut(visitor: Visitor): Promise<void> {
  const { tokens } = visitor
  if (tokens === undefined) return
  const form = asForm({ token: tokens.access_token })
  const answer = await visitor.ask('log out', { path: '/oauth/revoke', ...form })
  if (answer === undefined) return
  judge(visitor, 'log out', answer, answer.status === 200)
  visitor.logOut()
  const after = await visitor.ask('after log out', { path: '/bytes/1/10', token: tokens.access_token })
  if (after !== undefined) judge(visitor, 'after log out', after, isRefusal(after, 401, 'invalid_token'))
}

/** C14, C15: past the limit all is refused, and exactly past it. */
export async function greed(visitor: Visitor): Promise<void> {
  const { house } = visitor
  const connection = await connect({
    transport: visitor.transport,
    url: house.served.url,
    from: neighbour(visitor),
  })
  let passed = 0
  let refused = 0
  let wrong = 0
  try {
    for (let i = 0; i < LIMITS.oauth + 5; i++) {
      const answer = await connection.send({ path: '/oauth/token', ...asForm({ grant_type: 'none' }) })
      if (answer.status === 429 && Number(answer.header('retry-after')) >= 1) refused += 1
      else if (isRefusal(answer, 400, 'unsupported_grant_type')) passed += 1
      else wrong += 1
    }
  } catch (error) {
    if (!(error instanceof BrokenTransfer)) throw error
    wrong += 1
  } finally {
    connection.close()
  }
  if (passed === LIMITS.oauth && refused === 5 && wrong === 0) house.ledger.count('greed', 'limited')
  else house.ledger.fail('greed', `${passed} passed, ${refused} refused, ${wrong} otherwise`)
}

/** An address that nobody else uses. */
function neighbour({ address }: Visitor): string {
  return address.replace(/^127\.(\d+)/, (_, second) => `127.${Number(second) + 100}`)
}
