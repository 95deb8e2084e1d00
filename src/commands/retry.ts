import type { CommandIo, ExitCode } from './command.ts'
import { control } from './control.ts'
import { type SidecarOptions, stateDirOf } from './find-sidecar.ts'

/** Makes the running sidecar forget the learned ceilings, so that more requests at once are tried again. */
export async function retryCommand(options: SidecarOptions, io: CommandIo): Promise<ExitCode> {
  const stateDir = stateDirOf('retry', options, io)
  const response = await control(stateDir, { method: 'POST', path: '/retry' })
  const count = 'retried' in response ? Number(response.retried) : 0
  const none = 'nothing to try again: the device has not shown that a number is too many\n'
  io.stdout.write(
    count === 0 ? none : 'the bound is forgotten: one more request at once is tried by and by\n',
  )
  return 0
}
