import { connect } from '../support/client.ts'
import { BrokenTransfer } from '../support/message.ts'
import { LIMITS } from './context.ts'
import { asForm, isRefusal, judge } from './judge.ts'
import type { Visitor } from './visitor.ts'

export async function refresh(visitor: Visitor): Promise<void> {
  const { tokens } = visitor
  if (tokens === undefined) return
  const from = visitor.context.now()
  const form = asForm({ grant_type: 'refresh_token', refresh_token: tokens.refresh_token })
  const response = await visitor.ask('refresh', { path: '/oauth/token', ...form })
  if (response === undefined) return
  const revoked =
    visitor.outdated || visitor.context.disturbanceLog.affected('password', from, visitor.context.now())
  if (revoked && isRefusal(response, 400, 'invalid_grant')) {
    visitor.context.ledger.count('refresh', 'revoked')
    visitor.logOut()
    return
  }
  const given = response.status === 200 ? response.json() : {}
  const right = given.refresh_token === tokens.refresh_token && given.access_token !== tokens.access_token
  judge(visitor, 'refresh', response, right)
}

export async function wrongPassword(visitor: Visitor): Promise<void> {
  const form = asForm({ grant_type: 'password', password: 'certainly not' })
  const response = await visitor.ask('wrong password', { path: '/oauth/token', ...form })
  if (response !== undefined)
    judge(visitor, 'wrong password', response, isRefusal(response, 400, 'invalid_grant'))
}

export async function formerPassword(visitor: Visitor): Promise<void> {
  const { password, disturbanceLog, now } = visitor.context
  const from = now()
  const { changes, before } = password
  if (changes === 0) return
  const form = asForm({ grant_type: 'password', password: before })
  const response = await visitor.ask('former password', { path: '/oauth/token', ...form })
  if (response === undefined || disturbanceLog.affected('password', from, now())) return
  judge(visitor, 'former password', response, isRefusal(response, 400, 'invalid_grant'))
}

export async function badForm(visitor: Visitor): Promise<void> {
  const body = visitor.random.pick([
    '',
    'grant_type',
    'grant_type=password&password=%zz',
    'a=b&a=b&grant_type=password',
  ])
  const response = await visitor.ask('bad form', { path: '/oauth/token', ...asForm({}), body })
  if (response !== undefined)
    judge(visitor, 'bad form', response, isRefusal(response, 400, 'invalid_request'))
}

export async function noToken(visitor: Visitor): Promise<void> {
  const token = visitor.random.pick([undefined, 'wrong', 'x'.repeat(43)])
  const response = await visitor.ask('no token', { path: '/bytes/1/10', token })
  if (response !== undefined) judge(visitor, 'no token', response, isRefusal(response, 401, 'invalid_token'))
}

export async function logOut(visitor: Visitor): Promise<void> {
  const { tokens } = visitor
  if (tokens === undefined) return
  const form = asForm({ token: tokens.access_token })
  const response = await visitor.ask('log out', { path: '/oauth/revoke', ...form })
  if (response === undefined) return
  judge(visitor, 'log out', response, response.status === 200)
  visitor.logOut()
  const after = await visitor.ask('after log out', { path: '/bytes/1/10', token: tokens.access_token })
  if (after !== undefined) judge(visitor, 'after log out', after, isRefusal(after, 401, 'invalid_token'))
}

/** C14, C15: exactly the requests past the limit are refused. */
export async function exceedLimit(visitor: Visitor): Promise<void> {
  const { context } = visitor
  const connection = await connect({
    transport: visitor.transport,
    url: context.served.url,
    from: unusedAddress(visitor),
  })
  let passed = 0
  let refused = 0
  let wrong = 0
  try {
    for (let i = 0; i < LIMITS.oauth + 5; i++) {
      const response = await connection.send({ path: '/oauth/token', ...asForm({ grant_type: 'none' }) })
      if (response.status === 429 && Number(response.header('retry-after')) >= 1) refused += 1
      else if (isRefusal(response, 400, 'unsupported_grant_type')) passed += 1
      else wrong += 1
    }
  } catch (error) {
    if (!(error instanceof BrokenTransfer)) throw error
    wrong += 1
  } finally {
    connection.close()
  }
  if (passed === LIMITS.oauth && refused === 5 && wrong === 0) context.ledger.count('exceed limit', 'limited')
  else context.ledger.fail('exceed limit', `${passed} passed, ${refused} refused, ${wrong} otherwise`)
}

/** An address that no visitor uses. */
function unusedAddress({ address }: Visitor): string {
  return address.replace(/^127\.(\d+)/, (_, second) => `127.${Number(second) + 100}`)
}
