"""What notebooks in sessions say, in the language of the person. It runs in pods, so it is one table, without Django.

`HEKLA_LANGUAGE` names the language, as in `zh-hans`; the session sets it. Messages of the console come from the console
in the same language.
"""

import os

_CHINESE = {
    "Submitted {name}: {url}": "已提交 {name}：{url}",
    "Detached. {name} goes on.": "已停止跟踪。{name} 继续运行。",
    "Interrupted.": "已中断。",
    "Check the options of {magic}: {message}": "请检查 {magic} 的选项：{message}",
    "{path} is not a notebook.": "{path} 不是笔记本。",
    "{path} cannot be read: {reason}": "无法读取 {path}：{reason}",
    "pending": "等待中",
    "aborting": "中止中",
    "aborted": "已中止",
    "running": "运行中",
    "restarting": "重启中",
    "completing": "完成中",
    "completed": "已完成",
    "terminating": "终止中",
    "terminated": "已终止",
    "failed": "已失败",
    # The button
    "Submit as job": "作为作业提交",
    "Submit this notebook as a job": "将此笔记本作为作业提交",
    "Submit": "提交",
    "Submitted": "已提交",
    "Cancel": "取消",
    "OK": "确定",
    "Name": "名称",
    "Queue": "队列",
    "CPUs": "CPU",
    "Memory": "内存",
    "GPUs": "GPU",
    "Image": "镜像",
    "as the notebook": "与笔记本相同",
    "as this session's job": "与此会话的作业相同",
}


def language() -> str:
    """The language of the person; empty outside of sessions."""
    return os.environ.get("HEKLA_LANGUAGE", "")[:16]


def texts() -> dict[str, str]:
    """The translations into that language, by the English text; none into English."""
    return _CHINESE if language().startswith("zh") else {}


def translate(english: str, **facts: object) -> str:
    """A text of this table in that language, with these facts filled in."""
    return texts().get(english, english).format(**facts)
