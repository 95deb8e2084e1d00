import { expect, it } from 'vitest'
import { NAVIGATION } from '../browser/browsing.ts'
import { send } from '../support/client.ts'
import { startSidecar } from '../support/sidecar.ts'

it('H319 each body of Postern has nosniff, on both listeners, and each page opens apart from others', async () => {
  const sidecar = await startSidecar({ config: { browser: { login: 'on' } } })
  const admin = (path: string) => send({ transport: 'http1', url: sidecar.adminUrl, path })
  const bodies = [
    await admin('/metrics'),
    await admin('/healthz'),
    await admin('/readyz'),
    await admin('/nothing'),
    await sidecar.request(),
    await sidecar.postToken('x'),
    await sidecar.postToken({ grant_type: 'password', password: 'wrong' }),
  ]
  const pages = [
    await admin('/'),
    await sidecar.request({ fields: NAVIGATION }),
    await sidecar.request({ path: '/oauth/logout', fields: NAVIGATION }),
    await sidecar.request({ method: 'TRACE', fields: NAVIGATION }),
  ]
  for (const { status, fields, ...response } of [...bodies, ...pages]) {
    expect(response.body.length, `${status}`).toBeGreaterThan(0)
    expect(fields.join().toLowerCase(), `${status}`).toContain('x-content-type-options,nosniff')
  }
  for (const page of pages) {
    expect(page.header('content-type')).toBe('text/html; charset=utf-8')
    expect(page.header('cross-origin-opener-policy')).toBe('same-origin')
  }
})
