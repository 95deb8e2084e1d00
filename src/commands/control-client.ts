import { request } from 'node:http'
import { text } from 'node:stream/consumers'
import { controlSocketPath } from '../admin/control-socket.ts'

/** There is no running sidecar to talk to, or it would not do as asked. */
export class ControlError extends Error {
  override readonly name = 'ControlError'
}

/** Sends one command to the sidecar that runs on `stateDir`, and gives its answer. */
export async function control(
  stateDir: string,
  { method, path, command }: { readonly method: string; readonly path: string; readonly command?: object },
): Promise<unknown> {
  const socketPath = controlSocketPath(stateDir)
  return new Promise((resolve, reject) => {
    const outgoing = request({ socketPath, method, path, agent: false }, (response) => {
      text(response).then((body) => {
        if (response.statusCode === 200) resolve(JSON.parse(body))
        else reject(new ControlError(`the sidecar refused: ${body}`))
      }, reject)
    })
    outgoing.once('error', (error: NodeJS.ErrnoException) => {
      const reason =
        error.code === 'ENOENT' || error.code === 'ECONNREFUSED'
          ? `no sidecar is running on ${stateDir} (looked for ${socketPath})`
          : `cannot talk to ${socketPath}: ${error.message}`
      reject(new ControlError(reason))
    })
    outgoing.end(command === undefined ? undefined : JSON.stringify(command))
  })
}
