"""What a command would die of, said before it is started: findings from its words and from what was seen of its host. Pure.

`examine.examine` puts a `command.Command` and a `sight.Sight` of its host through all checks and returns a `finding.Report`. Each
`check_<noun>` module holds one subject. The codes stand in `findings.toml`.
"""
