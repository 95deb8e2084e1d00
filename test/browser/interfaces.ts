import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import net from 'node:net'
import { join } from 'node:path'
import process from 'node:process'
import { listening } from '../sign-in/devices.ts'
import { temporaryDirectory } from '../support/certificate.ts'
import { closeLater } from '../support/cleanup.ts'
import { unusedPort } from '../support/raw.ts'
import { needs, needsLibrary } from '../support/tools.ts'

/** The web client of the console, which the Debian package `novnc` has. */
const NOVNC = '/usr/share/novnc'

function start(program: string, args: readonly string[]): void {
  // Syncthing would start a second process, which outlives the first.
  const child = spawn(program, args, { stdio: 'ignore', env: { ...process.env, STMONITORED: 'yes' } })
  closeLater(async () => {
    const gone = once(child, 'exit')
    if (child.exitCode !== null || !child.kill('SIGKILL')) return
    await gone
  })
}

/** Options of Syncthing without which it calls servers of its project. */
const ALONE = {
  globalAnnounceEnabled: false,
  localAnnounceEnabled: false,
  relaysEnabled: false,
  natEnabled: false,
  crashReportingEnabled: false,
  urAccepted: -1,
  autoUpgradeIntervalH: 0,
}

/** Starts Syncthing: a web interface of a hundred files, which asks for events by long polls and sends a CSRF token with each request. */
export async function startSyncthing(): Promise<{ readonly url: string }> {
  needs('syncthing')
  const [port, own] = [await unusedPort(), await unusedPort()]
  const home = temporaryDirectory()
  const options = Object.entries({ listenAddress: `tcp://127.0.0.1:${own}`, ...ALONE })
  const lines = options.map(([name, value]) => `<${name}>${value}</${name}>`).join('')
  const gui = `<gui enabled="true" tls="false"><address>127.0.0.1:${port}</address></gui>`
  writeFileSync(
    join(home, 'config.xml'),
    `<configuration version="36">${gui}<options>${lines}</options></configuration>`,
  )
  start('syncthing', ['serve', '--no-browser', '--no-restart', '--no-default-folder', `--home=${home}`])
  await listening(port)
  return { url: `http://127.0.0.1:${port}` }
}

export interface Console {
  readonly url: string
  /** Fills the screen with a colour, `0xrrggbb`. */
  fill(color: number): void
}

/** Starts a display, and the console of a management controller for it: noVNC over a WebSocket. */
export async function startConsole(): Promise<Console> {
  for (const tool of ['Xvnc', 'websockify']) needs(tool)
  needsLibrary('novnc', ['test', '-e', `${NOVNC}/vnc_lite.html`])
  const [vnc, port] = [await unusedPort(), await unusedPort()]
  const display = 100 + Math.floor(Math.random() * 30_000)
  const screen = ['-geometry', '640x480', '-depth', '24', '-ac']
  start('Xvnc', [`:${display}`, ...screen, '-rfbport', String(vnc), '-localhost', '-SecurityTypes', 'None'])
  await listening(vnc)
  start('websockify', ['--web', NOVNC, `127.0.0.1:${port}`, `127.0.0.1:${vnc}`])
  await listening(port)
  return { url: `http://127.0.0.1:${port}`, fill: await openDisplay(display) }
}

/** Connects to a display by the X11 protocol. Without a client it would reset when the first one leaves. */
async function openDisplay(display: number): Promise<Console['fill']> {
  const socket = net.connect(`/tmp/.X11-unix/X${display}`)
  closeLater(() => {
    socket.destroy()
  })
  socket.write(Uint8Array.of('l'.charCodeAt(0), 0, 11, 0, 0, 0, 0, 0, 0, 0, 0, 0))
  let reply = Buffer.alloc(0)
  while (reply.length < 8 || reply.length < 8 + 4 * reply.readUInt16LE(6)) {
    const [piece]: Buffer[] = await once(socket, 'data')
    reply = Buffer.concat([reply, piece ?? Buffer.alloc(0)])
  }
  const vendor = Math.ceil(reply.readUInt16LE(24) / 4) * 4
  const root = reply.readUInt32LE(40 + vendor + 8 * reply.readUInt8(29))
  const BACKGROUND = 2
  return (color) => {
    // ChangeWindowAttributes, then ClearArea of all.
    socket.write(Buffer.from(Uint32Array.of(0x4_0002, root, BACKGROUND, color, 0x4_003d, root, 0, 0).buffer))
  }
}
