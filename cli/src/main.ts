// The hawser command for people. Signing in, devices and sessions from the terminal are not here yet; what there is
// today belongs to the server's administrator.

export async function main(args: string[]): Promise<void> {
  const asked = args.length === 0 || args[0] === 'help' || args[0] === '--help'
  const out = asked ? process.stdout : process.stderr
  if (!asked) out.write(`hawser: there is no command ${args[0]}\n\n`)
  out.write(
    [
      'Usage:',
      '  hawser serve          runs the server',
      '  hawser admin <…>      commands of the administrator; without one it lists them',
      '  hawser recording verify <file> [key]',
      '                        says whether a recording is as it was written',
      '',
    ].join('\n'),
  )
  if (!asked) process.exitCode = 2
}
