import fs from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'
import { expect, it, vi } from 'vitest'
import { startSidecar } from '../support/sidecar.ts'
import { nextSweep } from '../support/sweep.ts'

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
