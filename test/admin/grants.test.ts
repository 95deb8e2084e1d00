import { expect, it } from 'vitest'
import { grantRow, startAdmin } from './viewing.ts'

it('H231 `page/grants` answers a search as JSON, and refuses one without a text or with a long one', async () => {
  const viewed = await startAdmin()
  viewed.overview.found = { matches: 1, rows: [grantRow('a')] }
  const { status, headers, text } = await viewed.ask('/page/grants?find=%20192.0.2.%20')
  expect([status, headers['content-type'], headers['cache-control']]).toEqual([
    200,
    'application/json',
    'no-store',
  ])
  expect(JSON.parse(text)).toEqual(viewed.overview.found)
  for (const query of ['', '?find=', '?find=%20', `?find=${'a'.repeat(101)}`])
    expect((await viewed.ask(`/page/grants${query}`)).status, query).toBe(400)
  expect(viewed.overview.searched).toEqual(['192.0.2.'])
  expect((await viewed.ask('/page/grants?find=a', { method: 'POST' })).status).toBe(405)
})

it('H231 a search that has to wait too long, or a shared store that is silent, is 503 with a time to come back', async () => {
  const viewed = await startAdmin()
  for (const [found, error, after] of [
    ['busy', 'busy', '1'],
    ['unavailable', 'store_unavailable', '5'],
  ] as const) {
    viewed.overview.found = found
    const { status, headers, text } = await viewed.ask('/page/grants?find=a')
    expect([status, headers['retry-after'], JSON.parse(text).error]).toEqual([503, after, error])
  }
})

it('H152 H231 with a password a search needs a login, and no other site can send one', async () => {
  const viewed = await startAdmin({ password: true })
  expect((await viewed.ask('/page/grants?find=a')).status).toBe(401)
  const Cookie = await viewed.signIn()
  expect((await viewed.ask('/page/grants?find=a', { headers: { Cookie } })).status).toBe(200)
  const foreign = { Cookie, Origin: 'https://other.example' }
  expect((await viewed.ask('/page/grants?find=a', { headers: foreign })).status).toBe(403)
  expect(viewed.overview.searched).toEqual(['a'])
})
