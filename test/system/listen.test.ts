import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { type AddressInfo, connect, createServer, Server } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { describe, expect, it } from 'vitest'
import { listen } from '../../src/system/listen.ts'
import { explainListenError, type ListenAddress } from '../../src/system/listen-address.ts'
import type { SetupError } from '../../src/system/setup-error.ts'
import { temporaryDirectory } from '../support/certificate.ts'
import { closeLater } from '../support/cleanup.ts'

it('a file in place of a Unix socket is not removed, and the error names it', async () => {
  const path = join(temporaryDirectory(), 'file')
  writeFileSync(path, 'precious')
  await expect(listen(createServer(), { kind: 'unix', path })).rejects.toThrow(
    `cannot listen on unix:${path}: it exists and is not a socket; move it away`,
  )
  expect(readFileSync(path, 'utf8')).toBe('precious')
})

/** A machine without IPv6: the system refuses a socket of that family. */
class ServerWithoutIPv6 extends Server {
  override listen(...given: never[]): this {
    const [options] = given as readonly { readonly host?: string }[]
    if (options?.host === undefined || !options.host.includes(':')) return super.listen(...given)
    const error = Object.assign(new Error('listen EAFNOSUPPORT'), { code: 'EAFNOSUPPORT' })
    queueMicrotask(() => this.emit('error', error))
    return this
  }
}

describe('listen.address: auto', () => {
  const AUTO = { kind: 'tcp', host: '::', port: 0, orIPv4: true } as const

  it('takes connections over IPv4 and IPv6', async () => {
    const server = createServer((socket) => socket.end(`${socket.remoteAddress}`))
    closeLater(() => void server.close())
    const address = await listen(server, AUTO, 'listen.address')
    expect(address).toMatch(/^\[::\]:\d+$/)
    const { port } = server.address() as AddressInfo
    const seen = await Promise.all(['127.0.0.2', '::1'].map((host) => text(connect(port, host))))
    expect(seen).toEqual(['::ffff:127.0.0.1', '::1'])
  })

  it('takes connections over IPv4 where the machine has no IPv6; [::] is then an error', async () => {
    const server = new ServerWithoutIPv6()
    closeLater(() => void server.close())
    expect(await listen(server, AUTO, 'listen.address')).toMatch(/^0\.0\.0\.0:\d+$/)
    await expect(listen(new ServerWithoutIPv6(), { kind: 'tcp', host: '::', port: 0 })).rejects.toThrow(
      'cannot listen on [::]:0: the system has no IPv6 (EAFNOSUPPORT)',
    )
  })

  it('is an error, and not IPv4 alone, where another program has the port over IPv6', async () => {
    const holder = createServer().listen({ host: '::', port: 0, ipv6Only: true })
    await once(holder, 'listening')
    closeLater(() => void holder.close())
    const { port } = holder.address() as AddressInfo
    await expect(listen(createServer(), { ...AUTO, port })).rejects.toThrow(
      `cannot listen on auto:${port}: the port is in use (EADDRINUSE)`,
    )
  })
})

describe('H108 an address that cannot be used', () => {
  const failing = (address: ListenAddress): Promise<string> =>
    listen(createServer(), address, 'listen.address').then(
      () => expect.fail('it listens'),
      ({ problems }: SetupError) => problems.join('\n'),
    )

  it('in use: the error says how to find the program that uses it', async () => {
    const holder = createServer().listen(0, '127.0.0.1')
    await once(holder, 'listening')
    closeLater(() => void holder.close())
    const { port } = holder.address() as AddressInfo
    expect(await failing({ kind: 'tcp', host: '127.0.0.1', port })).toBe(
      `listen.address: cannot listen on 127.0.0.1:${port}: the port is in use (EADDRINUSE); ss -tanp 'sport = :${port}' shows by what: stop that program, wait a minute if it is only TIME-WAIT, or use another port`,
    )
  })

  it.each<readonly [string, ListenAddress, string]>([
    [
      'of another machine',
      { kind: 'tcp', host: '192.0.2.1', port: 0 },
      'cannot listen on 192.0.2.1:0: this machine has no address 192.0.2.1 (EADDRNOTAVAIL); ip addr lists',
    ],
    [
      'in a folder that does not exist',
      { kind: 'unix', path: '/nowhere/postern.sock' },
      'cannot listen on unix:/nowhere/postern.sock: there is no folder /nowhere; create it',
    ],
    [
      'that the service manager did not pass',
      { kind: 'fd', fd: 999 },
      'cannot listen on fd:999: descriptor 999 is no listening socket (EINVAL); start postern.socket',
    ],
  ])('%s', async (_what, address, says) => {
    expect(await failing(address)).toContain(`listen.address: ${says}`)
  })

  it('for which an ordinary user lacks the right: the error names the ways to get it', () => {
    const error = Object.assign(new Error('listen EACCES'), { code: 'EACCES' })
    expect(explainListenError(error, { kind: 'tcp', host: '0.0.0.0', port: 443 })).toEqual({
      reason: 'the system lets no ordinary user open port 443 (EACCES)',
      remedy: expect.stringMatching(/port from 1024 on.*postern\.socket.*ip_unprivileged_port_start=443/),
    })
  })

  it('for which a policy lacks the permission, from port 1024 on: the error says so', () => {
    const error = Object.assign(new Error('listen EACCES'), { code: 'EACCES' })
    expect(explainListenError(error, { kind: 'tcp', host: '0.0.0.0', port: 8443 })).toEqual({
      reason: 'a policy of the system forbids port 8443 (EACCES)',
      remedy: expect.stringContaining('SELinux'),
    })
  })

  it('that the permission model of Node withholds: the error names the flag, and no folder', () => {
    const error = Object.assign(new Error('Access'), { code: 'ERR_ACCESS_DENIED', permission: 'Net' })
    expect(explainListenError(error, { kind: 'unix', path: '/nowhere/x.sock' }).reason).toContain(
      '--allow-net',
    )
  })

  it('keeps the reason of the system if it is an unknown one', () => {
    const address = { kind: 'tcp', host: '0.0.0.0', port: 1 } as const
    expect(explainListenError(new Error('odd'), address)).toEqual({ reason: 'odd', remedy: undefined })
  })
})
