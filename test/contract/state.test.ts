import { execFileSync } from 'node:child_process'
import { readdirSync } from 'node:fs'
import fs from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'
import { describe, expect, it, vi } from 'vitest'
import { prepareSite } from '../process/serve.ts'
import { startSidecar } from '../support/sidecar.ts'
import { needs } from '../support/tools.ts'
import { nextSweep } from '../support/waiting.ts'

const under = (limit: string): { readonly under: readonly string[] } => ({
  under: ['sh', '-c', `ulimit ${limit}; exec "$@"`, 'sh'],
})

describe('H73 A full disk', () => {
  it('H73 is reported in log and metrics, and no token is refused', async () => {
    const site = await prepareSite()
    // The limit on the size of a file, in blocks of 512 bytes.
    const sidecar = await site.serve(under('-S -f 200'))
    const tokens: string[] = []
    const reported = sidecar.waitForLog('token file: serving from memory')
    let full = false
    void reported.then(() => {
      full = true
    })
    while (!full) {
      const some = await Promise.all(Array.from({ length: 10 }, () => sidecar.grant()))
      tokens.push(...some.map(({ access_token }) => access_token))
    }
    expect(await reported).toMatchObject({ level: 50, operation: 'issue', reason: expect.any(String) })
    tokens.push((await sidecar.grant()).access_token)
    const statuses = await Promise.all(tokens.slice(-20).map((token) => sidecar.use(token)))
    expect(new Set(statuses)).toEqual(new Set([200]))
    expect(await sidecar.metric('postern_store_errors_total', 'store="file"')).toBeGreaterThan(0)
    // For a moment the file may have room for all again, where the write-ahead log begins anew.
    await expect
      .poll(async () => {
        await sidecar.grant()
        return await sidecar.metric('postern_tokens_unsaved')
      })
      .toBeGreaterThan(0)
    expect(await sidecar.ready()).toBe(200)
  })
})

it('H73 a failed flush of the token file is reported as such, and the file stays in use', async () => {
  const sidecar = await startSidecar({ config: { tokens: { store: 'file' } } })
  const { open } = fs
  const opened = vi.spyOn(fs, 'open').mockImplementation((path, ...rest) => {
    if (String(path).endsWith('tokens.db-wal')) {
      return Promise.reject(Object.assign(new Error('i/o error'), { code: 'EIO' }))
    }
    return open(path, ...rest)
  })
  syncBuiltinESMExports()
  try {
    await sidecar.grant()
    await nextSweep(sidecar.clock)
    const reports = (): string[] => sidecar.logLines().filter((line) => line.includes('"msg":"token file: '))
    await expect.poll(reports).not.toEqual([])
    const text = 'token file: could not be flushed; a power cut may lose the latest tokens'
    expect(reports().map((line) => JSON.parse(line))).toMatchObject([
      { level: 50, operation: 'flush', msg: text },
    ])
    expect(await sidecar.metric('postern_store_errors_total', { operation: 'flush' })).toBe(1)
    expect(await sidecar.metric('postern_tokens_unsaved')).toBe(0)
  } finally {
    opened.mockRestore()
    syncBuiltinESMExports()
  }
})

describe('H77 Exhausted file descriptors', () => {
  it('H77 refuse some clients, leave the process alive, and have no effect once descriptors are free', async () => {
    needs('prlimit')
    const site = await prepareSite()
    const sidecar = await site.serve()
    // After the start, which bounds the connections by the limit that it finds.
    execFileSync('prlimit', ['--pid', String(sidecar.pid), '--nofile=80:'])
    const token = (await sidecar.grant()).access_token
    const kept = await sidecar.connect()
    const fields = ['Authorization', `Bearer ${token}`]
    expect((await kept.send({ fields })).status).toBe(200)
    site.device.closeConnections()
    await site.device.waitForOpenConnections(0)

    const crowd = (await Promise.allSettled(Array.from({ length: 200 }, () => sidecar.connect())))
      .filter((settled) => settled.status === 'fulfilled')
      .map(({ value }) => value)
    // Without a descriptor for the connection to the device, a client that is already connected gets a 500.
    let before = 0
    const isFull = (): boolean => {
      const now = readdirSync(`/proc/${sidecar.pid}/fd`).length
      const full = now >= 80 && now === before
      before = now
      return full
    }
    await expect.poll(isFull).toBe(true)
    const refused = await kept.send({ fields })
    expect(refused.status).toBe(500)
    expect(refused.json().error).toBe('upstream_unavailable')
    expect(refused.header('Proxy-Status')).toBe('postern; error=destination_unavailable')
    for (const connection of crowd) connection.close()
    const status = (): Promise<unknown> => sidecar.use(token).catch(() => 'refused')
    await expect.poll(status).toBe(200)
    expect((await kept.send({ fields })).status).toBe(200)
    expect((await sidecar.grant()).access_token).toMatch(/^[\w-]{43}$/)
    expect(await sidecar.stop()).toEqual({ code: 0, signal: null })
    expect(sidecar.logged('internal error: this is a bug in Postern')).toEqual([])
  })
})

describe('H78 A shared store', () => {
  it('H78 with a wrong URL is refused at start with a clear message', async () => {
    const store = 'rediss://user:canary@127.0.0.1/x'
    const site = await prepareSite({ config: { tokens: { store } } })
    const problem =
      'tokens.store: must end after the port, or in the number of a database, such as valkey://host:6379/0'
    for (const command of ['serve', 'check', 'status']) {
      expect(await site.postern(command)).toEqual({
        code: 2,
        signal: null,
        stdout: '',
        stderr: expect.stringMatching(
          new RegExp(`^postern ${command}: ${RegExp.escape(`${site.configFile}:1: ${problem}`)}\n`),
        ),
      })
    }
  })
})
