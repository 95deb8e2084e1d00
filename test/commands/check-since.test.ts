import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, expect, it } from 'vitest'
import { prepareSite, type Site } from '../process/serve.ts'

const KEYS = ['upstream.buffer_uploads', 'upstream.max_in_flight', 'admin.password_file', 'status_codes']

/** The keys that `check` warns of, because they behave differently. */
async function changed(site: Site, ...args: readonly string[]): Promise<readonly string[]> {
  const { code, stdout } = await site.postern('check', '--quiet', '--config', site.configFile, ...args)
  expect(code).toBe(0)
  return [...stdout.matchAll(/^WARNING ([\w./]+): .*\n?.*\(since\s+1\.0\.0\)/gm)].map(([, key = '']) => key)
}

describe('H340 `check` says what behaves differently', () => {
  it('since the version of `--since`, for the keys that the configuration leaves out', async () => {
    const site = await prepareSite()
    expect(await changed(site)).toEqual([])
    expect(await changed(site, '--since', '1.0.0')).toEqual([])
    expect(await changed(site, '--since', '0.1.0')).toEqual(KEYS)
    expect(await changed(site, '--since', '0.1.0', '--set', 'upstream.max_in_flight=64')).toEqual(
      KEYS.filter((key) => key !== 'upstream.max_in_flight'),
    )
    site.configure({ upstream: { idle_timeout: '10m' } })
    expect(await changed(site, '--since', '0.1.0')).toContain('upstream.tunnel_idle_timeout')
    site.configure({ upstream: { idle_timeout: '10m', tunnel_idle_timeout: '5m' } })
    expect(await changed(site, '--since', '0.1.0')).toEqual(KEYS)
    site.configure({ upstream: { routes: { '/camera/': { url: site.device.url, buffer_uploads: 'off' } } } })
    expect(await changed(site, '--since', '0.1.0')).toContain('upstream.routes./camera/.max_in_flight')
    const wrong = await site.postern('check', '--since', 'yesterday')
    expect([wrong.code, wrong.stderr]).toEqual([
      2,
      expect.stringContaining('It must be a version such as 0.1.0.'),
    ])
    // Neither of them would say it.
    for (const flag of ['--reload', '--evidence']) {
      const silent = await site.postern('check', '--config', site.configFile, '--since', '0.1.0', flag)
      expect([silent.code, silent.stdout, silent.stderr]).toEqual([
        2,
        '',
        expect.stringMatching(/option .* cannot be used with option/),
      ])
    }
  })

  it('since the version that wrote the token file', async () => {
    const site = await prepareSite()
    const sidecar = await site.serve()
    await sidecar.grant()
    await sidecar.stop()
    expect(await changed(site)).toEqual([])
    const db = new DatabaseSync(join(site.stateDir, 'tokens.db'))
    db.exec('PRAGMA user_version = 3')
    db.close()
    expect(await changed(site)).toEqual(KEYS)
  })
})
