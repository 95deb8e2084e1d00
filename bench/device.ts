import process from 'node:process'
import { fileURLToPath } from 'node:url'
import { freePort, listening, startChild } from './child.ts'
import { nginxVersion, startNginx } from './peers/nginx-process.ts'

/** 27 bytes of JSON: the body of every response. */
export const DEVICE_BODY = '{"status":"ok","uptime":42}'

export interface Device {
  readonly name: string
  readonly port: number
}

/** Starts a device that is never the bottleneck: nginx if it is installed, otherwise a Node server. */
export async function startFastDevice(core: number | undefined): Promise<Device> {
  const version = await nginxVersion()
  if (version === undefined) return startNodeDevice(core)
  const { port } = await startNginx(
    (own) => `server { listen 127.0.0.1:${own}; location / { return 200 '${DEVICE_BODY}'; } }`,
    core,
  )
  return { name: `nginx ${version}`, port }
}

/** Starts a device that receives bodies, sends bodies (`/bytes/SIZE`) and counts its requests. */
export async function startNodeDevice(core: number | undefined): Promise<Device> {
  const port = await freePort()
  const program = fileURLToPath(new URL('node-device.ts', import.meta.url))
  const child = await startChild(process.execPath, [program, String(port), DEVICE_BODY], { core })
  await listening(port, child)
  return { name: `node ${process.versions.node}`, port }
}
