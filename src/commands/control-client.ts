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
      reject(
        new ControlError(
          reasonFor(error.code, stateDir, socketPath) ?? `cannot talk to ${socketPath}: ${error.message}`,
        ),
      )
    })
    outgoing.end(command === undefined ? undefined : JSON.stringify(command))
  })
}

function reasonFor(code: string | undefined, stateDir: string, socketPath: string): string | undefined {
  switch (code) {
    case 'ENOENT':
    case 'ECONNREFUSED':
      return `no sidecar is running on ${stateDir} (looked for ${socketPath})`
    case 'EACCES':
      return `${socketPath} is open to root and the user of the sidecar only; run this command as one of them`
    default:
      return undefined
  }
}
