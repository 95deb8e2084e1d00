import { expect, it } from 'vitest'
import { startWithLogin } from '../browser/browsing.ts'
import { startSidecar } from '../support/sidecar.ts'
import { transports } from '../support/transports.ts'

/** The realm of a challenge, as RFC 9110 §5.6.4 reads a quoted string. */
function realmIn(field: string): string {
  const [, quoted = ''] = /^Bearer realm="((?:[^"\\]|\\.)*)"(?:, |$)/.exec(field) ?? []
  return Buffer.from(quoted.replaceAll(/\\(.)/gs, '$1'), 'latin1').toString()
}

const REALM = 'Süd "1" \\ it\'s 12 € 🔥'

for (const transport of transports) {
  it(`H220 C11 the realm is any text, and the challenge carries it as a quoted string in UTF-8, over ${transport}`, async () => {
    const sidecar = await startSidecar({ transport, config: { realm: REALM } })
    const missing = (await sidecar.request()).header('www-authenticate') ?? ''
    expect(missing).toMatch(/^Bearer realm="(?:[ !#-[\]-~\x80-\xff]|\\.)*"$/)
    expect(realmIn(missing)).toBe(REALM)
    const invalid = (await sidecar.request({ token: 'x' })).header('www-authenticate') ?? ''
    expect(invalid.endsWith('", error="invalid_token"')).toBe(true)
    expect(realmIn(invalid)).toBe(REALM)
  })
}

it('H220 the login page shows it, escaped', async () => {
  const sidecar = await startWithLogin({ config: { realm: 'Süd <"1"> & \\' } })
  const page = await sidecar.request({ fields: ['Sec-Fetch-Mode', 'navigate', 'Sec-Fetch-Site', 'none'] })
  expect(page.text).toContain('<h1>Süd &lt;&quot;1&quot;&gt; &amp; \\</h1>')
  expect(realmIn(page.header('www-authenticate') ?? '')).toBe('Süd <"1"> & \\')
})
