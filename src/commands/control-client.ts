import { request } from 'node:http'
import { text } from 'node:stream/consumers'
import { controlSocketPath } from '../admin/control-socket.ts'
import { SetupError } from '../system/setup-error.ts'

/**
 * Sends one command to the sidecar that runs on `stateDir`, and gives its answer. Fails with a `SetupError` where no sidecar
 * runs there, or it would not do as asked.
 */
export async function control(
  stateDir: string,
  { method, path, command }: { readonly method: string; readonly path: string; readonly command?: object },
): Promise<unknown> {
  const socketPath = controlSocketPath(stateDir)
  return new Promise((resolve, reject) => {
    const outgoing = request({ socketPath, method, path, agent: false }, (response) => {
      text(response).then((body) => {
        if (response.statusCode === 200) resolve(JSON.parse(body))
        else reject(new SetupError(`the sidecar refused: ${body}`, { exitCode: 1 }))
      }, reject)
    })
    outgoing.once('error', (error: NodeJS.ErrnoException) => {
      reject(
        new SetupError(
          reasonFor(error.code, stateDir, socketPath) ?? `cannot talk to ${socketPath}: ${error.message}`,
          { exitCode: 1, cause: error },
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
