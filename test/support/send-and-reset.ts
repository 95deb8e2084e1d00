import { spawnSync } from 'node:child_process'
import process from 'node:process'
import { expect } from 'vitest'

/** Connects, sends and resets, in another process: a server in this process accepts only afterwards. */
export function sendAndReset(url: string, bytes: string): void {
  const { hostname: host, port } = new URL(url)
  const script = `
    const socket = require('node:net').connect({ host: '${host}', port: ${port} }, () =>
      socket.write(${JSON.stringify(bytes)}, () => socket.resetAndDestroy()))`
  expect(spawnSync(process.execPath, ['-e', script]).status).toBe(0)
}
